import { useState } from "react";
import { Call, type JoinChoices, PreJoin } from "windlass-react";
import "windlass-react/styles.css";

export function App({ server }: { server: string }) {
  const [choices, setChoices] = useState<JoinChoices>();
  const [joined, setJoined] = useState(false);
  const join = (chosen: JoinChoices) => {
    setChoices(chosen);
    setJoined(true);
  };
  if (choices === undefined || !joined) return <PreJoin {...choices} onJoin={join} />;
  return <Call url={server} room="standup" {...choices} onLeave={() => setJoined(false)} />;
}
