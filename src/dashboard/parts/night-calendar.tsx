import type { NightModel } from '../../api/operation/nights.js';
import { counts } from './columns.js';
import { type Column, column, DataTable } from './data-table.js';
import { daysUntil, shortDay, weekdayOf, wholeDay } from './days.js';
import { listAddress } from './list-page.js';
import { durationText, Link, numberText, When } from './shown-values.js';
import { useAddress } from './view.js';

export const NIGHTS_SHOWN = 30;

/** How complete a night was. Each look has a colour, a sign and a word, so that no meaning depends on the colour alone. */
const LOOKS = {
  whole: { word: 'every list proved', sign: 'm-5 0 3.5 4 6.5-8' },
  nearly: { word: 'at least 95 in 100 proved', sign: 'm0-5v5.5m0 3.5v.1' },
  short: { word: 'fewer proved', sign: 'm-4-4 8 8m0-8-8 8' },
  'under-way': { word: 'under way', sign: 'm-5 0h.1m4.9 0h.1m4.9 0h.1' },
  none: { word: 'no run', sign: 'm-4 0h8' },
} as const;
type Look = keyof typeof LOOKS;

function lookOf({ companies_due: due, lists, ended_at, finished_at }: NightModel): Look {
  if (due === 0 && lists.due === 0) return 'none';
  if (lists.verified >= lists.due) return 'whole';
  if (ended_at === null && finished_at === null && due > 0) return 'under-way';
  return lists.verified >= 0.95 * lists.due ? 'nearly' : 'short';
}

/** A calendar of the nights, each with a link to its runs. The same facts are in words next to it and in the table below. `nights`: newest first. */
export function Nights({ nights }: { readonly nights: readonly NightModel[] }) {
  const [newest] = nights;
  if (!newest) return null;
  return (
    <section class="card nights" aria-labelledby="nights">
      <h2 id="nights">Nights</h2>
      <div class="side-by-side">
        <Calendar nights={nights} last={newest.night} />
        <div>
          <Newest night={newest} />
          <ul class="legend" aria-hidden="true">
            {(Object.keys(LOOKS) as Look[]).map((look) => (
              <li key={look}>
                <svg class={`night ${look}`} viewBox="0 0 20 20">
                  <rect width="20" height="20" rx="5" />
                  <Sign look={look} x={10} y={10} />
                </svg>
                {LOOKS[look].word}
              </li>
            ))}
          </ul>
        </div>
      </div>
      <details>
        <summary>The nights as a table</summary>
        <DataTable
          caption="The last nights, newest first"
          columns={COLUMNS}
          rows={nights}
          keyOf={({ night }) => night}
          empty="No night has begun yet."
        />
      </details>
    </section>
  );
}

const CELL = 44;
const GAP = 4;
const HEAD = 20;

function Calendar({ nights, last }: { readonly nights: readonly NightModel[]; readonly last: string }) {
  const byDay = new Map(nights.map((night) => [night.night, night]));
  const days = daysUntil(last, NIGHTS_SHOWN);
  const offset = weekdayOf(days[0]!);
  const height = HEAD + Math.ceil((offset + days.length) / 7) * CELL;
  return (
    <svg
      class="calendar"
      viewBox={`0 0 ${7 * CELL - GAP} ${height - GAP}`}
      role="group"
      aria-label={`The last ${NIGHTS_SHOWN} nights`}
    >
      {['M', 'T', 'W', 'T', 'F', 'S', 'S'].map((letter, i) => (
        <text key={i} class="weekday" x={i * CELL + (CELL - GAP) / 2} y={12} aria-hidden="true">
          {letter}
        </text>
      ))}
      {days.map((day, i) => {
        const place = offset + i;
        return (
          <Cell
            key={day}
            day={day}
            isFirst={i === 0}
            night={byDay.get(day)}
            x={(place % 7) * CELL}
            y={HEAD + Math.floor(place / 7) * CELL}
          />
        );
      })}
    </svg>
  );
}

interface CellProps {
  readonly day: string;
  /** The first cell names its month, like the first day of each month. */
  readonly isFirst: boolean;
  /** Undefined if the day has no counted night: Muster did not run, or the schedule has none on that day. */
  readonly night: NightModel | undefined;
  readonly x: number;
  readonly y: number;
}

function Cell({ day, isFirst, night, x, y }: CellProps) {
  const address = useAddress();
  const size = CELL - GAP;
  const date = Number(day.slice(8));
  const label = (
    <text class="date" x={x + 5} y={y + 12} aria-hidden="true">
      {isFirst || date === 1 ? shortDay(day) : date}
    </text>
  );
  if (!night)
    return (
      <g class="night absent">
        <rect x={x} y={y} width={size} height={size} rx={6} />
        {label}
      </g>
    );
  const look = lookOf(night);
  return (
    <a class={`night ${look}`} href={address(runsOf(night))}>
      <title>{sentenceOf(night)}</title>
      <rect x={x} y={y} width={size} height={size} rx={6} />
      {label}
      <Sign look={look} x={x + size / 2} y={y + size / 2 + 6} />
    </a>
  );
}

function Sign({ look, x, y }: { readonly look: Look; readonly x: number; readonly y: number }) {
  return <path d={`M${x} ${y}${LOOKS[look].sign}`} />;
}

/** The page with all runs of the night, whatever their trigger. */
function runsOf({ began_at, ended_at }: NightModel): string {
  return listAddress('/runs', { since: began_at, ...(ended_at !== null && { until: ended_at }) });
}

function sentenceOf(night: NightModel): string {
  return `${wholeDay(night.night)}: ${[proofsOf(night), ...detailsOf(night)].join(', ')}`;
}

function proofsOf(night: NightModel): string {
  if (lookOf(night) === 'none') return LOOKS.none.word;
  return `${numberText(night.lists.verified)} of ${numberText(night.lists.due)} lists proved${lookOf(night) === 'under-way' ? ' so far' : ''}`;
}

function detailsOf(night: NightModel): string[] {
  const { companies_due: due, runs, lists, changes } = night;
  if (lookOf(night) === 'none') return [];
  return [
    ...(due > 0 ? [`${numberText(runs.succeeded)} of ${numberText(due)} nightly runs succeeded`] : []),
    ...(runs.failed > 0 ? [`${numberText(runs.failed)} failed`] : []),
    ...(runs.cancelled > 0 ? [`${numberText(runs.cancelled)} cancelled`] : []),
    ...(lists.unverified > 0 ? [`${numberText(lists.unverified)} read without a proof`] : []),
    `${numberText(changes.inserted)} inserted`,
    `${numberText(changes.updated)} updated`,
    `${numberText(changes.deleted)} deleted`,
  ];
}

function Newest({ night }: { readonly night: NightModel }) {
  return (
    <div class="newest">
      <h3>{wholeDay(night.night)}</h3>
      <p>
        <b>{proofsOf(night)}</b>
      </p>
      <ul>
        {detailsOf(night).map((detail) => (
          <li key={detail}>{detail}</li>
        ))}
      </ul>
      <p class="hint">
        {night.started_at === null ? 'No nightly run has begun.' : <Span night={night} />}{' '}
        <Link to={runsOf(night)}>Runs since it began</Link>
      </p>
    </div>
  );
}

function Span({ night: { started_at, finished_at } }: { readonly night: NightModel }) {
  if (finished_at === null)
    return (
      <>
        Begun <When at={started_at} />.
      </>
    );
  return (
    <>
      Took {durationText(Date.parse(finished_at) - Date.parse(started_at!))}, ended <When at={finished_at} />.
    </>
  );
}

const COLUMNS: readonly Column<NightModel>[] = [
  column('Night', (night) => <Link to={runsOf(night)}>{wholeDay(night.night)}</Link>),
  column('Lists proved', (night) => proofsOf(night).replace(' lists proved', '')),
  counts('Without a proof', ({ lists }) => lists.unverified),
  counts('Runs failed', ({ runs }) => runs.failed),
  counts('Inserted', ({ changes }) => changes.inserted),
  counts('Updated', ({ changes }) => changes.updated),
  counts('Deleted', ({ changes }) => changes.deleted),
  column(
    'Took',
    ({ started_at, finished_at }) =>
      started_at === null || finished_at === null ? '' : durationText(Date.parse(finished_at) - Date.parse(started_at)),
    { numeric: true },
  ),
];
