/** Lets everything run that waits for no timer. */
export const settle = (): Promise<void> => new Promise((done) => setImmediate(done));
