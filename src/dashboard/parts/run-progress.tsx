import type { RunModel } from '../../api/runs/run-model.js';
import { durationText, numberText } from './shown-values.js';

/** How far a run is, in one line, with one time left. control-room.js moves its numbers. */
export function RunProgress({ run }: { readonly run: RunModel }) {
  const { progress, walks, estimated_seconds_left: left } = run;
  if (!progress) return null;
  const { resource, lists_done, lists, pages, received, expected, percent } = progress;
  const position = walks.findIndex((walk) => walk.resource === resource) + 1;
  // Records a second.
  const pace = expected !== null && left ? ((expected - received) / left).toFixed(3) : undefined;
  return (
    <section class="card progress" aria-label="Progress" data-expected={expected ?? undefined} data-pace={pace}>
      <p>
        {percent !== null && (
          <b>
            <span data-progress="percent">{percent}</span> %
          </b>
        )}
        <span>
          {resource === undefined
            ? `${numberText(lists_done)} of ${numberText(lists)} lists`
            : `${resource}, list ${numberText(position)} of ${numberText(lists)}`}
        </span>
        <span>
          <span data-progress="received">{numberText(received)}</span>
          {expected !== null && ` of ${numberText(expected)}`} records
        </span>
        <span data-progress="pages">
          {numberText(pages)} {pages === 1 ? 'page' : 'pages'}
        </span>
        <b data-time-left>{typeof left === 'number' ? timeLeft(left) : 'time left unknown'}</b>
      </p>
      {expected !== null && expected > 0 && (
        <progress
          max={expected}
          value={Math.min(received, expected)}
          aria-label="Received of the whole run"
          data-progress="received"
        />
      )}
    </section>
  );
}

/** "20 %, about 2 min left", for tables. */
export function progressText({ progress, estimated_seconds_left: left }: RunModel): string | undefined {
  if (!progress) return undefined;
  const { percent, received, lists_done, lists } = progress;
  const known = percent === null ? `${numberText(received)} records, ${lists_done} of ${lists} lists` : `${percent} %`;
  return typeof left === 'number' ? `${known}, ${timeLeft(left)}` : known;
}

/** Rounded, since an estimate is no promise. control-room.js rounds in the same way. */
function timeLeft(seconds: number): string {
  const step = seconds < 60 ? 1 : seconds < 3_600 ? 10 : 60;
  return `about ${durationText(Math.round(seconds / step) * step * 1_000)} left`;
}
