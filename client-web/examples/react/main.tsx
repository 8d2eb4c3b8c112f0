// A call in React: everybody who opens the page is in the room. Camera and microphone need HTTPS or localhost.
// `cargo xtask run` starts a server; then, once `npm run build` and `npm run types` in ../../react have built the
// components, `npm install` and `npm start` here.
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { Call, type JoinChoices, PreJoin } from "windlass-react";
import "windlass-react/styles.css";

// The page's address may name another server: ?server=https://calls.example/
const server = new URLSearchParams(location.search).get("server") ?? "http://localhost:7880/";

function App() {
  const [choices, setChoices] = useState<JoinChoices>();
  const [joined, setJoined] = useState(false);
  const join = (chosen: JoinChoices) => {
    setChoices(chosen);
    setJoined(true);
  };
  if (choices === undefined || !joined) return <PreJoin {...choices} onJoin={join} />;
  return <Call url={server} room="standup" {...choices} onLeave={() => setJoined(false)} />;
}

createRoot(document.querySelector("#app") as Element).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
