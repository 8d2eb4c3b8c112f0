/** The style of `<windlass-video>`, inside its shadow root. */
export const STYLE = `
:host {
  display: block;
  position: relative;
  container-type: size;
  aspect-ratio: 16 / 9;
  overflow: hidden;
  background: #10181b;
  color: #fff;
  font: 0.86rem/1.3 system-ui, sans-serif;
}

:host([hidden]) {
  display: none;
}

/* As large as the picture is shown, so that the divider and its labels stay on the picture. */
.stage {
  --at: 50%;
  --aspect: 16 / 9;
  position: absolute;
  inset: 0;
  width: min(100cqw, 100cqh * (var(--aspect)));
  height: min(100cqh, 100cqw / (var(--aspect)));
  margin: auto;
}

video {
  position: absolute;
  inset: 0;
  width: 100%;
  height: 100%;
  object-fit: contain;
  opacity: 0;
}

:host([mirror]) video {
  transform: scaleX(-1);
}

:host([video="on"]) .live video {
  opacity: 1;
}

:host([video="on"]) .live video.enhanced {
  opacity: 0;
  transition: opacity 0.12s;
}

:host([video="on"]:not([state="native"], [view="plain"])) .live video.enhanced {
  opacity: 1;
}

:host([view="split"]) video.enhanced {
  clip-path: inset(0 0 0 var(--at));
}

.avatar {
  position: absolute;
  inset: 0;
  display: grid;
  place-items: center;
  font-size: clamp(1.5rem, 18cqmin, 4.5rem);
  font-weight: 600;
  opacity: 0.6;
}

:host([video="on"]) .live .avatar {
  display: none;
}

.side,
.divider {
  display: none;
}

:host([view="split"][video="on"]) .live .divider,
:host([view="split"][video="on"]:not([state="native"])) .live .side {
  display: block;
}

:host([view="split"][state="native"]) .divider {
  opacity: 0.5;
}

.side {
  position: absolute;
  bottom: 3.2rem;
  padding: 0.25rem 0.7rem;
  border-radius: 10px;
  background: rgb(16 28 32 / 78%);
  pointer-events: none;
}

.left {
  right: calc(100% - var(--at) + 0.7rem);
  max-width: calc(var(--at) - 1.4rem);
  text-align: right;
}

.right {
  left: calc(var(--at) + 0.7rem);
  max-width: calc(100% - var(--at) - 1.4rem);
}

.divider {
  position: absolute;
  top: 0;
  bottom: 0;
  left: var(--at);
  width: 44px;
  margin-left: -22px;
  cursor: ew-resize;
  touch-action: none;
}

.divider::before {
  content: "";
  position: absolute;
  inset: 0 auto 0 21px;
  width: 2px;
  background: #fff;
  box-shadow: 0 0 6px rgb(0 0 0 / 60%);
}

.divider:focus-visible {
  outline: none;
}

.divider:focus-visible .grip {
  outline: 3px solid #7fd0da;
  outline-offset: 2px;
}

.grip {
  position: absolute;
  top: 50%;
  left: 50%;
  width: 40px;
  height: 40px;
  margin: -20px;
  border-radius: 50%;
  background: #fff;
  color: #0b4a54;
  font: 600 1.1rem/40px system-ui, sans-serif;
  text-align: center;
  box-shadow: 0 2px 10px rgb(0 0 0 / 45%);
}

.unblock {
  position: absolute;
  z-index: 3;
  inset: auto 0 0.6rem;
  width: fit-content;
  margin: 0 auto;
  padding: 0.6rem 1rem;
  border: 0;
  border-radius: 99px;
  background: #fff;
  color: #0c1a1e;
  font: inherit;
  font-weight: 600;
  cursor: pointer;
}

.unblock[hidden] {
  display: none;
}

.captions {
  position: absolute;
  z-index: 1;
  inset: auto 5% 2.8rem;
  text-align: center;
}
`;
