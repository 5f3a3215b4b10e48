/** htmx 2 as we use it. Imported before its ws extension, which expects the global. */
import htmx from "htmx.org";

declare global {
  interface Window {
    htmx: typeof htmx;
  }
}
window.htmx = htmx;

htmx.config.allowEval = false;
htmx.config.includeIndicatorStyles = false; // an inline <style>: a strict policy forbids it
htmx.config.historyCacheSize = 0; // manuscripts do not belong into localStorage
htmx.config.scrollIntoViewOnBoost = false;
htmx.config.globalViewTransitions = false;
htmx.config.defaultSettleDelay = 0; // no transitions to wait for; new buttons work at once
htmx.config.responseHandling = [
  { code: "204", swap: false },
  { code: "[23]..", swap: true },
  { code: "409|422", swap: true }, // a conflict and a refused form are pages to look at
  { code: "[45]..", swap: false, error: true },
];

export default htmx;
