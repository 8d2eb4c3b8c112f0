/** A choice of one of the machine's devices. */
import type { ReactNode } from "react";
import type { Device } from "windlass-client";

interface DeviceSelectProps {
  label: string;
  devices: readonly Device[];
  /** The id of the chosen one. */
  value: string;
  onChange: (device: string) => void;
}

/** Nothing where the browser names none: before the person has allowed one, or as it cannot choose. */
export function DeviceSelect({ label, devices, value, onChange }: DeviceSelectProps): ReactNode {
  const named = devices.filter(({ id }) => id !== "");
  if (named.length === 0) return null;
  return (
    <label className="windlass-field">
      {label}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {named.some(({ id }) => id === value) ? null : <option value={value}>The system's choice</option>}
        {named.map((device, at) => (
          <option key={device.id} value={device.id}>
            {device.label === "" ? `${label} ${at + 1}` : device.label}
          </option>
        ))}
      </select>
    </label>
  );
}
