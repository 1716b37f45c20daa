import type { ListCountsModel } from '../../api/operation/list-counts.js';
import { LIST_STATES, type ListState as StateName } from '../../db/tables/list-states.js';
import { type ListProps, listAddress } from './list-page.js';
import { Link, numberText, stateText } from './shown-values.js';

/** States in which a company lacks the list, or lacks a proof that it has all of it. */
const LACKING: readonly StateName[] = ['unavailable', 'never', 'failed'];

interface StateCountsProps {
  readonly counts: readonly ListCountsModel[];
  readonly filters: ListProps<unknown>['filters'];
}

/** How many lists, or companies with the chosen list, are in each state; each number leads to exactly these companies. */
export function StateCounts({ counts, filters }: StateCountsProps) {
  const { environment, resource, state } = filters;
  const chosen = counts.filter(
    (one) => (!environment || one.environment === environment) && (!resource || one.resource === resource),
  );
  const countOf = (name: StateName) => chosen.reduce((sum, { states }) => sum + states[name], 0);
  const shown = LIST_STATES.filter((name) => countOf(name) > 0);
  if (shown.length === 0) return null;
  const others = { ...(environment && { environment }), ...(resource && { resource }) };
  const lacking = LACKING.reduce((sum, name) => sum + countOf(name), 0);
  const lists = chosen.reduce((sum, one) => sum + one.lists, 0);
  return (
    <nav class="state-counts" aria-label={resource ? `Companies by the state of ${resource}` : 'Lists by their state'}>
      <p>
        {resource ? (
          <>
            {numberText(lacking)} of {numberText(lists)} companies lack <b>{resource}</b> or its proof.
          </>
        ) : (
          <>{numberText(lists)} lists:</>
        )}
      </p>
      <ul>
        {shown.map((name) => (
          <li key={name}>
            <Link to={listAddress('/companies', { ...others, state: name })} class={state === name ? 'current' : undefined}>
              <b>{numberText(countOf(name))}</b> {stateText(name).toLowerCase()}
              {state === name && <span class="unseen"> (shown)</span>}
            </Link>
          </li>
        ))}
      </ul>
      <ByProof proof={filters.proof} counts={chosen} others={others} />
    </nav>
  );
}

const PROOFS: Readonly<Record<string, string>> = {
  verified: 'were proved complete in time',
  late: 'were proved complete too long ago',
  never: 'were never proved complete',
  unavailable: 'are unavailable',
};

interface ByProofProps {
  readonly proof: string | undefined;
  readonly counts: readonly ListCountsModel[];
  readonly others: Readonly<Record<string, string>>;
}

/** A link of the overview sets the filter by proof. Says what it counts, and how to end it. */
function ByProof({ proof, counts, others }: ByProofProps) {
  if (proof === undefined || !Object.hasOwn(PROOFS, proof)) return null;
  const lists = counts.reduce((sum, { proofs }) => sum + proofs[proof as keyof ListCountsModel['proofs']], 0);
  return (
    <p class="between">
      {numberText(lists)} lists {PROOFS[proof]}, whatever their newest run did: these are their companies.{' '}
      <Link to={listAddress('/companies', others)}>With any proof</Link>
    </p>
  );
}
