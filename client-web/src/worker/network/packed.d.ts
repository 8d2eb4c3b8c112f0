/** Packed networks, which the bundler puts into the script. */
declare module "*.bin" {
  const bytes: Uint8Array;
  export default bytes;
}
