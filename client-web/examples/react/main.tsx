// A call in React: everybody who opens the page is in the room. Camera and microphone need HTTPS or localhost.
//
// In the repository's root: `cargo xtask run` builds the SDK and starts a server. In `client-web`: `npm run types`. In
// `client-web/react`: `npm ci`, `npm run build` and `npm run types`. Then here: `npm install` and `npm start`.
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.js";

// The page's address may name another server: ?server=https://calls.example/
const server = new URLSearchParams(location.search).get("server") ?? "http://localhost:7880/";

createRoot(document.querySelector("#app") as Element).render(
  <StrictMode>
    <App server={server} />
  </StrictMode>,
);
