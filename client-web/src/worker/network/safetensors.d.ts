/** Files of weights, which the bundler puts into the script. */
declare module "*.safetensors" {
  const bytes: Uint8Array;
  export default bytes;
}
