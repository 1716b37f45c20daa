// What pages do beyond what they show: copying a text, and following a run. Everything works without it, by looking again.

/** Shows the buttons that only a script can serve. */
function prepare(root) {
  for (const button of root.querySelectorAll('[data-copy]')) button.hidden = false;
}

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
  } catch {
    // Without TLS a browser gives no clipboard: the text is selected, to be copied by hand.
    button.parentElement.querySelector('input').select();
  }
});

const NUMBER = new Intl.NumberFormat('en-GB');

/** The one stream of this tab. */
let stream;

/** Follows the run that the page shows, as long as the tab is seen. */
function follow() {
  stream?.close();
  stream = undefined;
  const address = document.querySelector('#run[data-follow]')?.dataset.follow;
  if (!address || document.hidden) return;
  stream = new EventSource(address);
  stream.addEventListener('run', ({ data }) => show(JSON.parse(data)));
}

/** What the page says of the run beside its numbers; run-page.tsx says the same of what it shows. */
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

/** When so many records of a walk had been received, since its page was shown. */
const begun = new Map();

/** How fast a walk goes on, and how long it still takes at that pace; nothing before that can be said. */
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

/** Shows the run as the server shows it now: a part of it has begun, or ended. */
async function renew(element) {
  stream?.close();
  try {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const newer = page.querySelector('#run');
    if (newer) element.replaceWith(newer);
  } finally {
    follow();
  }
}

document.addEventListener('visibilitychange', follow);
// Nobody sees what a hidden tab would renew.
document.addEventListener('htmx:before:request', (event) => {
  if (document.hidden) event.preventDefault();
});
document.addEventListener('htmx:after:swap', () => prepare(document));
prepare(document);
follow();
