import type { ComponentChildren } from 'preact';
import type { CompanyModel } from '../../api/companies/company-model.js';
import type { RunModel } from '../../api/runs/run-model.js';
import { adviceFor } from '../../core/advice.js';
import { ActionForm } from './action-form.js';
import type { ActionName } from './actions.js';
import { Copyable } from './copyable.js';
import { listAddress } from './list-page.js';
import { HoldLink, type ListOfCompany, ListState } from './list-state.js';
import { Link, numberText, When } from './shown-values.js';

interface TroubleProps {
  readonly company: CompanyModel;
  /** The run that is queued or under way. */
  readonly running: RunModel | undefined;
  /** Records that the newest walks of its lists rejected are there. */
  readonly hasRejected: boolean;
}

/** The button that cures what is wrong with the company: it is next to the reason, and not among the other buttons. */
export function cureOf({
  company: { status, paused, resources },
  running,
}: Omit<TroubleProps, 'hasRejected'>): ActionName | undefined {
  if (status === 'reauthorization_required') return 'company.link';
  if (paused) return 'company.resume';
  return !running && resources.some(needsWalk) ? 'company.sync' : undefined;
}

const needsWalk = ({ state }: ListOfCompany) => state === 'failed' || state === 'late' || state === 'never';

/** Says first what is wrong with a company, list by list, with the button that cures it; or that nothing is. */
export function Trouble(props: TroubleProps) {
  const { company, running, hasRejected } = props;
  const { environment, company_id, status, paused, resources, token } = company;
  const lists = resources.filter((list) => list.hold !== undefined || (list.state !== 'on_time' && !isFirstRead(list, running)));
  const cure = cureOf(props);
  const isWell = cure === undefined && lists.every(({ state }) => state === 'unavailable') && !hasRejected && !token.problem;
  if (isWell)
    return lists.length < resources.length ? (
      <p class="notice good">{running ? 'Nothing is wrong.' : 'Nothing is wrong: every list is on time.'}</p>
    ) : null;
  const isBad = status === 'reauthorization_required' || resources.some(({ state }) => state === 'failed' || state === 'late');
  return (
    <section class={`notice trouble ${isBad ? 'bad' : 'warn'}`} aria-labelledby="trouble">
      <h2 id="trouble">{headingOf(props, lists.length)}</h2>
      <WholeCompany company={company} />
      {lists.length > 0 && (
        <ul class="problems">
          {lists.map((list) => (
            <TroubledList key={list.resource} company={company} list={list} />
          ))}
        </ul>
      )}
      {hasRejected && (
        <p>
          Records were rejected: they are not in the mirror.{' '}
          <Link to={listAddress('/rejected', { environment, company_id })}>Show the rejected records</Link>
        </p>
      )}
      {cure && (
        <div class="actions">
          <ActionForm name={cure} fields={{ environment, company_id }} describedBy="trouble" />
        </div>
      )}
      {paused && status !== 'paused' && <p class="hint">It is also paused, and stays so after the authorization.</p>}
    </section>
  );
}

/** A list that the first run is reading is not in trouble yet. */
function isFirstRead({ state, reason }: ListOfCompany, running: RunModel | undefined): boolean {
  return running !== undefined && state === 'never' && reason === 'no_walk_yet';
}

function headingOf({ company: { status, paused } }: TroubleProps, lists: number): string {
  if (status === 'reauthorization_required') return 'This company must authorize again';
  if (paused) return 'This company is paused';
  if (lists === 0) return 'This company needs attention';
  return lists === 1 ? 'One list needs attention' : `${numberText(lists)} lists need attention`;
}

function WholeCompany({
  company: { status, paused, reauthorization_reason: reason, authorize_url: url, token },
}: Pick<TroubleProps, 'company'>) {
  if (status === 'reauthorization_required')
    return (
      <>
        <p>{(reason && adviceFor(reason)) ?? adviceFor('reauthorization_required')}</p>
        {url && <Copyable label="Link for the company’s administrator" value={url} />}
      </>
    );
  return (
    <>
      {paused && <p>Nothing of it is read until it is resumed. Its lists do not count as late.</p>}
      {token.problem && (
        <p>
          The last refresh of its token was not granted: {token.problem}{' '}
          {token.retry_at && (
            <>
              Tried again <When at={token.retry_at} />.
            </>
          )}
        </p>
      )}
    </>
  );
}

function TroubledList({ company, list }: Pick<TroubleProps, 'company'> & { readonly list: ListOfCompany }): ComponentChildren {
  const { resource, state, reason, hold, last_run_id } = list;
  // The company says above that it must authorize.
  const isSaidAbove = reason === 'reauthorization_required';
  const advice = state === 'failed' && reason !== undefined && !isSaidAbove ? adviceFor(reason) : undefined;
  return (
    <li>
      <b>{resource}</b> <ListState list={list} />
      {advice && <p>{advice}</p>}
      {hold && (
        <p>
          <HoldLink company={company} resource={resource} count={hold.count} />
        </p>
      )}
      {state === 'failed' && last_run_id !== null && (
        <p>
          <Link to={`/runs/${last_run_id}`}>
            Show the run<span class="unseen"> that failed for {resource}</span>
          </Link>
        </p>
      )}
    </li>
  );
}
