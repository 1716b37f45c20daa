// Copies texts, adds the time in the browser's zone, and follows a run. The pages work without this script, by reloading them.

const OWN_TIME = new Intl.DateTimeFormat('en-GB', {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
});

/** Shows the buttons that need a script, and adds the time in the browser's zone to tooltips. */
function prepare(root) {
  for (const button of root.querySelectorAll('[data-copy]')) button.hidden = false;
  const zone = document.querySelector('[data-zone]')?.dataset.zone;
  if (!zone || zone === OWN_TIME.resolvedOptions().timeZone) return;
  for (const time of root.querySelectorAll('time[title]')) {
    const [whole] = time.title.split('\n');
    time.title = `${whole}\nHere: ${OWN_TIME.format(new Date(time.dateTime))}`;
  }
}

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
  } catch {
    // Without TLS a browser gives no access to the clipboard, so the text is selected to be copied by hand.
    button.parentElement.querySelector('input').select();
  }
});

const NUMBER = new Intl.NumberFormat('en-GB');

/** The event stream of this tab. */
let stream;

/** Follows the run of the page while the tab is visible. */
function follow() {
  stream?.close();
  stream = undefined;
  const address = document.querySelector('#run[data-follow]')?.dataset.follow;
  if (!address || document.hidden) return;
  stream = new EventSource(address);
  stream.addEventListener('run', ({ data }) => show(JSON.parse(data)));
}

/** The state that the page shows of a run, apart from numbers. run-page.tsx makes the same text. */
function stateOf(run) {
  const ofWalk = ({ status, total_records: whole }) => (whole === null ? status : `${status} of a number`);
  return [run.status, run.attempts, ...run.walks.map(ofWalk)].join(', ');
}

function show(run) {
  const element = document.querySelector('#run');
  if (!element) return;
  const state = stateOf(run);
  if (state !== element.dataset.state) {
    void renew(element);
    return;
  }
  for (const walk of run.walks) {
    const card = element.querySelector(`[data-walk="${CSS.escape(walk.resource)}"]`);
    const rate = card?.querySelector('[data-rate]');
    if (rate) rate.textContent = paceOf(walk);
    for (const count of card?.querySelectorAll('[data-count]') ?? []) {
      const value = walk[count.dataset.count];
      if (count.localName === 'progress') count.value = Math.min(count.max, value);
      else count.textContent = NUMBER.format(value);
    }
  }
}

/** For each list, the records received when the page was shown, and that time. */
const begun = new Map();

/** The pace of a walk and the time it still takes, or an empty text while that is unknown. */
function paceOf({ resource, passes, received, total_records: whole }) {
  const now = performance.now();
  const first = begun.get(resource);
  if (!first || first.passes !== passes || received < first.received) {
    begun.set(resource, { passes, received, at: now });
    return '';
  }
  const seconds = (now - first.at) / 1_000;
  const pace = (received - first.received) / seconds;
  if (seconds < 1 || pace <= 0) return '';
  const left = whole === null ? undefined : Math.max(0, Math.round((whole - received) / pace));
  return `${NUMBER.format(Math.round(pace))} records a second${left === undefined ? '' : `, about ${NUMBER.format(left)} s left`}`;
}

/** Loads the run again, since a part of it has begun or ended. */
async function renew(element) {
  stream?.close();
  try {
    const response = await fetch(location.href);
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const newer = page.querySelector('#run');
    if (newer) element.replaceWith(newer);
    prepare(document);
  } finally {
    follow();
  }
}

document.addEventListener('visibilitychange', follow);
// A hidden tab needs no updates.
document.addEventListener('htmx:before:request', (event) => {
  if (document.hidden) event.preventDefault();
});
document.addEventListener('htmx:after:swap', () => prepare(document));
prepare(document);
follow();
