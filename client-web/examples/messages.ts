/** A chat, a file for one person, a pointer that moves, and a raised hand. */
import type { Participant, Room } from "windlass-client";

/** What the page has. */
interface Page {
  add(name: string, text: string): void;
  show(name: string, hand: string | undefined): void;
}

/** Listens to the others, and sends one of each. */
export async function talk(call: Room, { add, show }: Page, who: Participant, bytes: Uint8Array): Promise<void> {
  const [x, y] = [0.5, 0.25];
  call.on("message", ({ topic, from, text }) => {
    if (topic === "chat") add(from.name, text ?? "");
  });
  call.on("participantChanged", (who) => show(who.name, who.attributes["hand"]));
  await call.send("chat", "Hello"); // to all others
  await call.send("file", bytes, { to: who }); // to one, or a list
  call.send("pointer", `${x},${y}`, { reliable: false }).catch(() => undefined); // soon out of date
  await call.setAttributes({ hand: "up", mood: null }); // null takes one back
}
