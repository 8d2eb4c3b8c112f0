/** Style sheets that a page imports are its bundler's. */
declare module "*.css";
