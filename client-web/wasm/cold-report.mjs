// Rounds and table of `cold.mjs`, in Node and in Chromium.

const HOW = ["cold", "warm"];
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/** Runs every stream `rounds` times in both ways, in turn, and prints the median (and least) of each figure. */
export async function report(target, streams, rounds, json) {
  const found = streams.map(() => ({ cold: [], warm: [] }));
  for (let round = 0; round < rounds; round++) {
    for (const [i, [, time]] of streams.entries()) {
      for (const how of HOW) found[i][how].push(await time(how));
    }
  }
  const rows = streams.flatMap(([stream], i) =>
    HOW.map((how) => {
      const of = (figure) => found[i][how].map(figure);
      const [first, later] = [of((r) => r.times[0]), of((r) => Math.max(...r.times.slice(1)))];
      const row = { target, stream, variant: how, first_ms: median(first), min_first_ms: Math.min(...first) };
      row.again_ms = median(of((r) => r.again));
      row.longest_later_ms = median(later);
      row.min_longest_later_ms = Math.min(...later);
      row.second_ms = median(of((r) => r.times.reduce((a, b) => a + b, 0)));
      if (how === "warm") {
        row.warm_up_ms = median(of((r) => r.steps.reduce((a, b) => a + b, 0)));
        row.warm_up_step_ms = median(of((r) => Math.max(...r.steps)));
      }
      return row;
    }),
  );
  if (json) return console.log(JSON.stringify({ command: "cold", rounds, rows }));
  for (const { stream, variant, ...row } of rows) {
    const figures = Object.entries(row).filter(([, v]) => typeof v === "number");
    console.log(`${target} ${stream} ${variant}: ${figures.map(([k, v]) => `${k} ${v.toFixed(1)}`).join(", ")}`);
  }
}
