import type { UnprovedListModel } from '../../api/operation/last-night.js';
import { failureInWords } from '../../core/failure-words.js';
import { ActionForm, useMay } from '../parts/action-form.js';
import { COMPANY } from '../parts/columns.js';
import { type Column, column } from '../parts/data-table.js';
import {
  COMPANY as COMPANY_SEARCH,
  choice,
  ENVIRONMENT,
  FoundTable,
  type ListProps,
  listAddress,
  listPage,
  ONE_COMPANY,
  RESOURCE,
} from '../parts/list-page.js';
import { Lasting, Link, ServiceSays, State, stateText, When } from '../parts/shown-values.js';

const STATES = ['reauthorization_required', 'failed', 'held', 'never', 'late', 'on_time'] as const;

const textOf = (state: string) => (state === 'on_time' ? 'Not late yet' : stateText(state));

export const unprovedPage = listPage<UnprovedListModel>({
  path: '/unproved',
  title: 'Lists without a proof since last night began',
  limit: 100,
  filters: {
    state: choice('State', STATES, { textOf }),
    resource: RESOURCE,
    environment: ENVIRONMENT,
    company: COMPANY_SEARCH,
    company_id: ONE_COMPANY,
  },
  lead: 'Last night is complete once none is left. Lists of companies that are paused, or were connected later, do not count.',
  label: 'Lists without a proof',
  Items: Lists,
});

function Lists(props: ListProps<UnprovedListModel>) {
  return (
    <>
      <Cure {...props} />
      <FoundTable
        {...props}
        caption="Lists that lack a proof, by company"
        columns={COLUMNS}
        keyOf={({ environment, company_id, resource }) => `${environment} ${company_id} ${resource}`}
        empty={['No list matches the filters.', 'Every list was proved complete since last night began.']}
      />
    </>
  );
}

/** The button that cures all lists of the chosen state. It has no filter by list or company, so it is absent where these narrow the page. */
function Cure({ list, filters }: ListProps<UnprovedListModel>) {
  const may = useMay();
  const { state, environment, ...others } = filters;
  if (list.data.length === 0 || Object.keys(others).length > 0) return null;
  const of = environment === undefined ? {} : { environment };
  if (state === 'reauthorization_required')
    return (
      <div class="actions">
        <ActionForm name="connect_links.create" fields={of} />
      </div>
    );
  if (state !== 'failed' || !may('companies.sync')) return null;
  return (
    <div class="actions">
      <Link class="button" to={listAddress('/syncs', { status: 'failed', ...of })}>
        Sync what failed
      </Link>
    </div>
  );
}

const COLUMNS: readonly Column<UnprovedListModel>[] = [
  COMPANY,
  column('List', ({ resource }) => resource),
  column('State', ({ state }) => (state === 'on_time' ? <span class="state">Not late yet</span> : <State of={state} />)),
  column('Since', ({ since }) => since && <Lasting since={since} />),
  column('Why', ({ reason, service_says }) => (
    <span class="details">
      {reason && failureInWords(reason)}
      <ServiceSays sentence={service_says} />
    </span>
  )),
  column('Last proof', ({ last_verified_at }) => <When at={last_verified_at} />),
  column('Run', ({ last_run_id }) => last_run_id && <Link to={`/runs/${last_run_id}`}>Newest run</Link>),
];
