// All that the package exports. JavaScript cannot export types that another file declares.
export * from "./index.js";
export type * from "./types.gen.js";
