/** Functions that make elements. */
import { Words, words, write } from "./language.js";

type Child = Node | string | Words | null | undefined;

/**
 * Makes an element with properties, attributes (names with `-`, or `role`) and children. Texts of the page, also as
 * attributes, follow its language.
 */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Record<string, unknown> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value instanceof Words) write(element, value, name);
    else if (name === "class") element.className = String(value);
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, String(value));
    else Object.assign(element, { [name]: value });
  }
  const [only] = children;
  if (children.length === 1 && only instanceof Words) {
    write(element, only);
    return element;
  }
  for (const child of children) {
    if (child instanceof Words) element.append(make("span", {}, child));
    else if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

const PATHS = {
  mic: "M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3Zm6-3a6 6 0 0 1-12 0m6 6v3m-3 0h6",
  "mic-off":
    "M9 9v3a3 3 0 0 0 4.5 2.6M15 11V6a3 3 0 0 0-5.7-1.3M6 12a6 6 0 0 0 9.3 5M18 12a6 6 0 0 1-.3 1.8M12 18v3m-3 0h6M4 4l16 16",
  camera: "M4 7h9a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V9a2 2 0 0 1 2-2Zm11 4 6-3v8l-6-3",
  "camera-off": "M10 7h3a2 2 0 0 1 2 2v3m0 1v2m-2 2H4a2 2 0 0 1-2-2V9c0-1 .7-1.8 1.6-2M15 11l6-3v8l-3-1.5M4 4l16 16",
  screen: "M4 5h16v11H4zM9 20h6M12 16v4M12 13V8m-2.500 2.500L12 8l2.500 2.500",
  leave: "M15 4h3a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2h-3M10 16l-4-4 4-4m-4 4h10",
  link: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 5.7 5.7l1-1",
  info: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Zm0-5v-5m0-3v.01",
  people:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7Zm-7 9c0-4 3-6 7-6s7 2 7 6M16 4.5a3.5 3.5 0 0 1 0 6M19 20c0-2.500-1-4.500-3-5.500",
  expand: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  file: "M6 3h8l4 4v14H6zM14 3v4h4M10 12l5 3-5 3z",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  float: "M4 5h16v14H4zM12 12h6v5h-6z",
  grid: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  speaker: "M4 4h16v10H4zM4 17h4v3H4zM10 17h4v3h-4zM16 17h4v3h-4z",
  chat: "M4 5h16v11H10l-4 4v-4H4z",
  hand: "M8 12V6a1.500 1.500 0 0 1 3 0v5m0-6a1.500 1.500 0 0 1 3 0v6m0-4.500a1.500 1.500 0 0 1 3 0V15a6 6 0 0 1-6 6c-3 0-4.500-1.500-6-4l-1.500-2.500c-.800-1.400 1-2.500 2-1.300L8 15",
  sound: "M4 9v6h4l5 4V5L8 9zM16 9a4 4 0 0 1 0 6M18.500 6.500a8 8 0 0 1 0 11",
  more: "M12 6v.01M12 12v.01M12 18v.01",
  settings:
    "M4 7h9m5 0h2M4 17h2m5 0h9M15.500 9.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM8.500 19.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5Z",
  close: "M6 6l12 12M18 6 6 18",
  back: "M15 5l-7 7 7 7",
  forth: "M9 5l7 7-7 7",
  keyboard: "M3 6h18v12H3zM7 10v.01M11 10v.01M15 10v.01M18 10v.01M8 14h8",
  shield: "M12 3l7 3v5c0 4.500-3 8-7 10-4-2-7-5.500-7-10V6zM9 12l2 2 4-4",
  alert: "M12 4 2.500 20h19zM12 10v4m0 3v.01",
  check: "M5 12.500l4.500 4.500L19 7.500",
  skip: "M6 12h12",
} as const;

export type IconName = keyof typeof PATHS;

/** A line icon; decoration, so hidden from screen readers. */
export function icon(name: IconName): SVGSVGElement {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(namespace, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** A sign of a state that may come and go, at first hidden, with its text for screen readers. */
export function sign(style: string, look: IconName, text: Words): HTMLElement {
  return make("span", { class: style, hidden: true }, icon(look), make("span", { class: "sr" }, text));
}

let mark: HTMLElement | null = null;

/**
 * The logo and name of the product. The logo element moves from screen to screen: a new one would be fetched again, and
 * the server may be down by then.
 */
export function brand(): HTMLElement {
  mark ??= make("img", { src: "icon.svg", alt: "", width: 28, height: 28 });
  return make("span", { class: "brand" }, mark, words("product"));
}
