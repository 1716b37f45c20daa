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
  clearInterval(ticking);
  pace = undefined;
  const address = document.querySelector('#run[data-follow]')?.dataset.follow;
  if (!address || document.hidden) return;
  beginPace();
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
  if (run.progress) showProgress(element, run.progress);
  for (const walk of run.walks) {
    const card = element.querySelector(`[data-walk="${CSS.escape(walk.resource)}"]`);
    for (const count of card?.querySelectorAll('[data-count]') ?? []) {
      const value = walk[count.dataset.count];
      if (count.localName === 'progress') count.value = Math.min(count.max, value);
      else count.textContent = NUMBER.format(value);
    }
  }
}

/** What is known of the pace of the run: that before the page was shown, the records and the time then, and the newest numbers. */
let pace;
let ticking;

/** Seconds that the pace until the page was shown counts for, next to the pace since then. */
const WEIGHT = 30;

function beginPace() {
  const line = document.querySelector('#run .progress');
  if (!line?.dataset.expected) return;
  pace = { before: Number(line.dataset.pace ?? 0), first: undefined };
  ticking = setInterval(showTimeLeft, 1_000);
}

/** Shows the numbers of the progress line, and takes them into the pace. */
function showProgress(element, { received, pages, percent, expected }) {
  const shown = { received, pages, percent };
  for (const part of element.querySelectorAll('[data-progress]')) {
    const value = shown[part.dataset.progress];
    if (part.localName === 'progress') part.value = Math.min(part.max, value);
    else if (part.dataset.progress === 'pages') part.textContent = `${NUMBER.format(value)} ${value === 1 ? 'page' : 'pages'}`;
    else if (value !== null) part.textContent = NUMBER.format(value);
  }
  if (!pace || expected === null) return;
  // A list that is read again begins with no records.
  if (!pace.first || received < pace.received) {
    pace.first = received;
    pace.at = performance.now();
  }
  Object.assign(pace, { received, expected });
  showTimeLeft();
}

function showTimeLeft() {
  const text = document.querySelector('#run [data-time-left]');
  if (!text || pace?.first === undefined) return;
  const seconds = (performance.now() - pace.at) / 1_000;
  const weight = pace.before > 0 ? WEIGHT : 0;
  const now = (pace.received - pace.first + pace.before * weight) / (seconds + weight);
  const left = Math.max(0, pace.expected - pace.received) / now;
  // A pace needs some seconds to be known.
  text.textContent = Number.isFinite(left) && seconds + weight > 3 ? `about ${durationText(left)} left` : 'time left unknown';
}

/** A rounded duration in its two largest units. run-progress.tsx rounds in the same way. */
function durationText(exact) {
  const step = exact < 60 ? 1 : exact < 3_600 ? 10 : 60;
  const seconds = Math.round(exact / step) * step;
  const parts = [
    [Math.floor(seconds / 3_600), 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) return '0 s';
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${NUMBER.format(count)} ${unit}`).join(' ');
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
