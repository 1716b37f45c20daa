import type { ComponentChildren } from 'preact';
import type { ListHistoryModel } from '../../api/operation/nights.js';
import { counts } from './columns.js';
import { type Column, column, DataTable } from './data-table.js';
import { daysUntil, lastDay, shortDay, wholeDay } from './days.js';
import { numberText } from './shown-values.js';
import { useView } from './view.js';

// Plots of the rows and changes of a company's lists. The server draws them, so they need no script.

type ListNight = ListHistoryModel['nights'][number];

const DAYS = 30;
const STEP = 12;
const WIDTH = DAYS * STEP;
const HEIGHT = 72;
/** Space above and below the line, for its dots. */
const MARGIN = 5;

export function ListPlots({ lists }: { readonly lists: readonly ListHistoryModel[] }) {
  if (lists.length === 0) return <p class="empty">No list has been read in the last {DAYS} nights.</p>;
  return (
    <>
      {lists.map((list) => (
        <Plots key={list.resource} list={list} />
      ))}
    </>
  );
}

function Plots({ list: { resource, nights } }: { readonly list: ListHistoryModel }) {
  const { now } = useView();
  const heading = `nights-of-${resource}`;
  const days = daysUntil(lastDay(now, nights[0]?.night), DAYS);
  return (
    <section class="card plots" aria-labelledby={heading}>
      <h3 id={heading}>{resource}</h3>
      <div class="side-by-side">
        <Rows nights={nights} days={days} />
        <Changes nights={nights} days={days} />
      </div>
      <details>
        <summary>
          As a table<span class="unseen">: the nights of {resource}</span>
        </summary>
        <DataTable
          caption={`Rows and changes of ${resource}, night by night`}
          columns={COLUMNS}
          rows={nights}
          keyOf={({ night }) => night}
          empty=""
        />
      </details>
    </section>
  );
}

interface PlotProps {
  /** Newest first. */
  readonly nights: readonly ListNight[];
  /** The days of the plot, oldest first. */
  readonly days: readonly string[];
}

/** A line from night to night. Its scale goes from the fewest rows to the most. */
function Rows({ nights, days }: PlotProps) {
  const known = nights.flatMap(({ records, ...night }) => (records === null ? [] : [{ ...night, records }]));
  const [newest] = known;
  if (!newest) return <Plot days={days} name="Rows" summary="no night has counted them yet" legend={[]} marks={[]} />;
  const rowCounts = known.map(({ records }) => records);
  const [least, most] = [Math.min(...rowCounts), Math.max(...rowCounts)];
  const y = (records: number) =>
    most === least ? HEIGHT / 2 : HEIGHT - MARGIN - ((records - least) / (most - least)) * (HEIGHT - 2 * MARGIN);
  const points = known
    .map((night) => ({ ...night, x: middleOf(days, night.night), y: round(y(night.records)) }))
    .filter(({ x }) => x > 0);
  const range = least === most ? 'the same in all of' : `${numberText(least)} to ${numberText(most)} in`;
  return (
    <Plot
      days={days}
      name="Rows"
      summary={
        <>
          <b>{numberText(newest.records)}</b>, {`${range} ${nightCount(known.length)}`}
        </>
      }
      legend={[
        ['proved', 'proved complete'],
        ['unproved', 'not proved'],
      ]}
      marks={known.map((night) => [night.night, `${numberText(night.records)} rows${night.verified ? '' : ', not proved'}`])}
    >
      <polyline class="line" points={points.map((point) => `${point.x},${point.y}`).join(' ')} />
      {points.map(({ night, verified, ...point }) => (
        <circle key={night} class={verified ? 'proved' : 'unproved'} cx={point.x} cy={point.y} r={verified ? 2.5 : 3} />
      ))}
    </Plot>
  );
}

/** A bar for each night: inserted and updated rows above the line, deleted rows below it. */
function Changes({ nights, days }: PlotProps) {
  const most = Math.max(1, ...nights.map(({ inserted, updated }) => inserted + updated));
  const gone = Math.max(0, ...nights.map(({ deleted }) => deleted));
  const scale = (HEIGHT - 2 * MARGIN) / (most + gone);
  const line = round(MARGIN + most * scale);
  const all = nights.reduce((sum, night) => sum + changesOf(night), 0);
  return (
    <Plot
      days={days}
      name="Changes"
      summary={
        <>
          <b>{numberText(all)}</b> in {nightCount(nights.length)}
        </>
      }
      legend={[
        ['inserted', 'inserted'],
        ['updated', 'updated'],
        ['deleted', 'deleted, below the line'],
      ]}
      marks={nights.map((night) => [
        night.night,
        `${numberText(night.inserted)} inserted, ${numberText(night.updated)} updated, ${numberText(night.deleted)} deleted`,
      ])}
    >
      <path class="axis" d={`M0 ${line}H${WIDTH}`} />
      {nights.map(({ night, inserted, updated, deleted }) => {
        const x = middleOf(days, night) - 4;
        // Every count above 0 is visible, however small it is.
        const [up, more, down] = [inserted, updated, deleted].map((count) =>
          count === 0 ? 0 : round(Math.max(1, count * scale)),
        );
        return x < 0 ? null : (
          <g key={night}>
            {inserted > 0 && <rect class="inserted" x={x} y={line - up!} width={8} height={up} />}
            {updated > 0 && <rect class="updated" x={x} y={round(line - up! - more!)} width={8} height={more} />}
            {deleted > 0 && <rect class="deleted" x={x} y={line} width={8} height={down} />}
          </g>
        );
      })}
    </Plot>
  );
}

interface FrameProps {
  readonly days: readonly string[];
  readonly name: string;
  readonly summary: ComponentChildren;
  readonly legend: readonly (readonly [look: string, text: string])[];
  /** The tooltips of nights. */
  readonly marks: readonly (readonly [night: string, text: string])[];
  readonly children?: ComponentChildren;
}

/** The plot is hidden from screen readers: its numbers are in the caption and in the table below. */
function Plot({ days, name, summary, legend, marks, children }: FrameProps) {
  return (
    <figure>
      <figcaption>
        {name}: {summary}
      </figcaption>
      <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT + 14}`} aria-hidden="true">
        <path class="ground" d={`M0 ${HEIGHT}H${WIDTH}`} />
        {children}
        <text x={0} y={HEIGHT + 12}>
          {shortDay(days[0]!)}
        </text>
        <text class="end" x={WIDTH} y={HEIGHT + 12}>
          {shortDay(days.at(-1)!)}
        </text>
        {marks.map(([night, text]) => {
          const x = middleOf(days, night) - STEP / 2;
          return x < 0 ? null : (
            <rect key={night} class="touch" x={x} y={0} width={STEP} height={HEIGHT}>
              <title>{`${wholeDay(night)}: ${text}`}</title>
            </rect>
          );
        })}
      </svg>
      <ul class="legend" aria-hidden="true">
        {legend.map(([look, text]) => (
          <li key={look}>
            <svg class="plot" viewBox="0 0 8 8">
              {look.endsWith('proved') ? <circle class={look} cx={4} cy={4} r={3} /> : <rect class={look} width={8} height={8} />}
            </svg>
            {text}
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** The x of the night; below 0 if the plot does not include it. */
const middleOf = (days: readonly string[], night: string) => days.indexOf(night) * STEP + STEP / 2;

const round = (value: number) => Math.round(value * 10) / 10;
const nightCount = (count: number) => `${numberText(count)} ${count === 1 ? 'night' : 'nights'}`;
const changesOf = ({ inserted, updated, deleted }: ListNight) => inserted + updated + deleted;

const COLUMNS: readonly Column<ListNight>[] = [
  column('Night', ({ night }) => wholeDay(night)),
  column('Rows', ({ records }) => (records === null ? <span class="none">not counted</span> : numberText(records)), {
    numeric: true,
  }),
  column('Proved complete', ({ verified }) => (verified ? 'yes' : <span class="warn">no</span>)),
  counts('Inserted', ({ inserted }) => inserted),
  counts('Updated', ({ updated }) => updated),
  counts('Deleted', ({ deleted }) => deleted),
];
