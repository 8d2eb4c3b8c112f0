// GStreamer for Python, which the system has, not an environment of pip's.
import { spawnSync } from "node:child_process";

export const SYSTEM_PYTHON = "/usr/bin/python3";

/** Whether this part of GStreamer, as `GstRtspServer`, is there for Python. */
export function hasGStreamer(part) {
  const needs = `import gi; gi.require_version('${part}', '1.0'); from gi.repository import ${part}`;
  return spawnSync(SYSTEM_PYTHON, ["-c", needs]).status === 0;
}

/** Whether GStreamer has this element, from the system or from GST_PLUGIN_PATH. */
export function hasElement(name) {
  const needs = `import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst; Gst.init(None); assert Gst.ElementFactory.find('${name}')`;
  return spawnSync(SYSTEM_PYTHON, ["-c", needs], { stdio: "ignore" }).status === 0;
}
