// The page /demo, as tests and measurements use it.

/** Moves the slider to the step that says `kbps`. */
export const setUplink = (page, kbps) =>
  page.locator("#uplink").evaluate((slider, kbps) => {
    for (let step = 0; step <= Number(slider.max); step++) {
      slider.value = String(step);
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      if (slider.getAttribute("aria-valuetext") === `${kbps} kbit/s`) return;
    }
    throw new Error(`no step of ${kbps} kbit/s`);
  }, kbps);
