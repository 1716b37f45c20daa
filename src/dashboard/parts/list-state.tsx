import type { CompanyModel } from '../../api/companies/company-model.js';
import { failureInWords } from '../../core/failure-words.js';
import { listAddress } from './list-page.js';
import { unverifiedInWords } from './proof-in-words.js';
import { Lasting, Link, numberText, ServiceSays, State } from './shown-values.js';

export type ListOfCompany = CompanyModel['resources'][number];

const REASONS: Readonly<Record<string, string>> = {
  unavailable: 'the service says that the company does not have it',
  share: 'too many rows would be deleted at once',
  grant: 'rows that the present authorization does not show would be deleted',
  reauthorization_required: 'the company must authorize again',
  company_paused: 'the company is paused',
  no_walk_yet: 'no run has read it to its end yet',
  no_walk_since: 'no run has read it to its end since',
};

/** A sentence: why a list is in its state. Undefined where the state says all. */
function reasonInWords({ state, reason }: Pick<ListOfCompany, 'state' | 'reason'>): string | undefined {
  if (reason === undefined) return undefined;
  // It may have authorized since.
  if (state === 'failed' && reason === 'reauthorization_required') return 'The company had to authorize again.';
  const clause = (Object.hasOwn(REASONS, reason) && REASONS[reason]) || (state === 'failed' ? failureInWords(reason) : undefined);
  return clause === undefined ? unverifiedInWords(reason) : `${clause[0]!.toUpperCase()}${clause.slice(1)}.`;
}

interface ListStateProps {
  readonly list: ListOfCompany;
  /** Leaves out the reason and the service's sentence. */
  readonly isBrief?: boolean;
  /** Leaves the exact time to the tooltip. */
  readonly isBriefTime?: boolean;
}

/** The state of a company's list: since when, why, and the service's own sentence. */
export function ListState({ list, isBrief = false, isBriefTime = isBrief }: ListStateProps) {
  const { state, since, service_says: says } = list;
  const reason = reasonInWords(list);
  return (
    <>
      <State of={state} />
      {state !== 'on_time' && since !== null && (
        <>
          {' '}
          <small>
            <Lasting since={since} isBrief={isBriefTime} />
          </small>
        </>
      )}
      {!isBrief && reason !== undefined && <p class="hint">{reason}</p>}
      {!isBrief && <ServiceSays sentence={says} />}
    </>
  );
}

interface HoldLinkProps {
  readonly company: Pick<CompanyModel, 'environment' | 'company_id'>;
  readonly resource: string;
  readonly count: number;
  readonly describedBy?: string;
}

/** Leads to the open holds of the company. */
export function HoldLink({ company: { environment, company_id }, resource, count, describedBy }: HoldLinkProps) {
  return (
    <Link to={listAddress('/holds', { environment, company_id })} describedBy={describedBy}>
      Decide on {numberText(count)} held {count === 1 ? 'deletion' : 'deletions'}
      <span class="unseen"> of {resource}</span>
    </Link>
  );
}

interface ListStatesProps {
  readonly lists: readonly ListOfCompany[];
  /** The chosen list, whose reason is shown, too. */
  readonly resource?: string | undefined;
}

/** The lists of a company that are not on time, one below the other; or the chosen one. */
export function ListStates({ lists, resource }: ListStatesProps) {
  const chosen = resource !== undefined && lists.find((list) => list.resource === resource);
  if (chosen) return <ListState list={chosen} isBriefTime />;
  const troubled = lists.filter(({ state }) => state !== 'on_time');
  if (troubled.length === 0) return <State of="on_time" />;
  return (
    <span class="stack">
      {troubled.map((list) => (
        <span key={list.resource}>
          {list.resource} <ListState list={list} isBrief />
        </span>
      ))}
    </span>
  );
}
