import type { LastNightModel } from '../../api/operation/last-night.js';
import type { OverviewModel } from '../../api/operation/overview.js';
import { useMay } from './action-form.js';
import { listAddress } from './list-page.js';
import { durationText, Link, numberText, When } from './shown-values.js';

interface LastNightProps {
  readonly night: LastNightModel;
  readonly overview: OverviewModel;
}

/** Says in one sentence whether the newest night is complete, with a link to exactly the lists that it lacks. */
export function LastNight({ night, overview }: LastNightProps) {
  const { tone, sentence } = answerOf(night, overview);
  const { stale_after_hours: hours, estimated_seconds_left: left } = overview;
  return (
    <section class={`verdict ${tone}`} aria-label="Whether last night is complete">
      <p class="answer">{sentence}</p>
      {tone === 'bad' && <SyncFailed night={night} />}
      <p class="hint">
        {tone === 'busy' && left !== null && `About ${durationText(left * 1_000)} left. `}
        {night.lists.due > 0 && (
          <>
            It began <When at={night.began_at} isBrief />.{' '}
          </>
        )}
        The next night begins <When at={night.next_at} />. The deadline of a list is {numberText(hours)} hours after its last
        proof (STALE_AFTER_HOURS), or what its own schedule allows.
      </p>
    </section>
  );
}

/** Leads to the question that names every company whose last run failed, and syncs them. */
function SyncFailed({ night: { lacking } }: Pick<LastNightProps, 'night'>) {
  const may = useMay();
  if (!may('companies.sync') || !lacking.some(({ state }) => state === 'failed')) return null;
  return (
    <div class="actions">
      <Link class="button" to="/syncs?status=failed">
        Sync what failed
      </Link>
    </div>
  );
}

/** The words for a number of lists in a state: "7 failed". */
const WORDS: Readonly<Record<LastNightModel['lacking'][number]['state'], string>> = {
  reauthorization_required: 'must be authorized again',
  failed: 'failed',
  held: 'held',
  never: 'never proved',
  late: 'late',
  on_time: 'not late yet',
};

function answerOf({ lists, lacking, under_way }: LastNightModel, { workers, lists: all }: OverviewModel) {
  const { due, proved } = lists;
  if (due === 0)
    return {
      tone: all.verified === all.total ? 'good' : 'busy',
      sentence: (
        <>
          <b>No night has begun since the first company was connected.</b> {ofLists(all.verified, all.total)} proved complete so
          far.
        </>
      ),
    };
  if (proved >= due)
    return {
      tone: 'good',
      sentence: (
        <>
          <b>Last night is complete:</b> {ofLists(proved, due)} proved.
        </>
      ),
    };
  if (under_way && workers > 0)
    return {
      tone: 'busy',
      sentence: (
        <>
          <b>Last night is under way:</b> {ofLists(proved, due)} proved,{' '}
          <Link to="/unproved">{numberText(due - proved)} to go</Link>.
        </>
      ),
    };
  const count = due - proved;
  return {
    tone: 'bad',
    sentence: (
      <>
        <b>Last night is not complete:</b>{' '}
        <Link to="/unproved">
          {numberText(count)} of {numberText(due)} lists {count === 1 ? 'lacks' : 'lack'} a proof
        </Link>
        {': '}
        {lacking.map(({ state, lists: some }, i) => (
          <span key={state}>
            {i > 0 && ', '}
            <Link to={listAddress('/unproved', { state })}>
              {numberText(some)} {WORDS[state]}
            </Link>
          </span>
        ))}
        .
      </>
    ),
  };
}

const ofLists = (some: number, all: number): string =>
  `${numberText(some)} of ${numberText(all)} ${all === 1 ? 'list was' : 'lists were'}`;
