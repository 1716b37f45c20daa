import { type CompanyModel, ListStateName } from '../../api/companies/company-model.js';
import type { ListCountsModel } from '../../api/operation/list-counts.js';
import { AsCommands, FormFields, get, useMay } from '../parts/action-form.js';
import { ACTIONS } from '../parts/actions.js';
import { counts, ENVIRONMENT as ENVIRONMENT_COLUMN } from '../parts/columns.js';
import { type Column, column } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { StateCounts } from '../parts/list-counts.js';
import { choice, ENVIRONMENT, FoundTable, type ListProps, listPage, search } from '../parts/list-page.js';
import { ListStates } from '../parts/list-state.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, Link, State, When } from '../parts/shown-values.js';
import { useAddress, useView } from '../parts/view.js';

export const OF_SELECTED = [
  ['company.sync', 'Sync selected'],
  ['company.full', 'Full resync of selected'],
  ['company.pause', 'Pause selected'],
  ['company.resume', 'Resume selected'],
] as const;

const PARTS = {
  path: '/companies',
  title: 'Companies',
  limit: 50,
  Head: () => (
    <div class="head">
      <h1>Companies</h1>
      {useMay()('connect_link.create') && (
        <Link class="button" to="/companies/connect">
          Connect a company
        </Link>
      )}
    </div>
  ),
  label: 'Companies found',
};

/** The counts by state are of all lists, so that a person sees which filter finds what. */
export async function companiesPage(request: PageRequest): Promise<PageContent> {
  const { data: counts } = await request.ask<{ data: readonly ListCountsModel[] }>('/api/list-counts');
  const resources = [...new Set(counts.map(({ resource }) => resource))];
  const page = listPage<CompanyModel>({
    ...PARTS,
    filters: {
      q: search('Name or id', 100),
      status: choice('Status', ['active', 'reauthorization_required', 'paused']),
      resource: choice('List', resources, { none: 'any', textOf: (resource) => resource }),
      state: choice('With a list that is', ListStateName.options),
      environment: ENVIRONMENT,
      proof: (_name, { proof }) => (proof === undefined ? null : <input type="hidden" name="proof" value={proof} />),
      sort: choice('Order', ['worst'], { none: 'by id', textOf: () => 'worst first' }),
    },
    Items: (found) => (
      <>
        <StateCounts counts={counts} filters={found.filters} />
        <Companies {...found} />
      </>
    ),
    useFurtherCommands: () => [get('The counts by state', '/api/list-counts')],
  });
  return page(request);
}

function Companies(found: ListProps<CompanyModel>) {
  const address = useAddress();
  const { address: here } = useView();
  const may = useMay();
  const actions = OF_SELECTED.filter(([name]) => may(name));
  const [first] = found.list.data;
  const table = (
    <FoundTable
      {...found}
      caption="Companies, their status and the last proof of their lists"
      columns={[...(actions.length > 0 ? [TICK] : []), ...columnsFor(found.filters)]}
      keyOf={keyOf}
      empty={['No company matches.', 'No company is connected yet.']}
    />
  );
  if (actions.length === 0 || !first) return table;
  return (
    <form method="post" action={address('/act/selection')}>
      <FormFields fields={{ back: here }} />
      {table}
      <div class="selection" role="group" aria-label="With the selected companies">
        {actions.map(([name, label]) => (
          <button key={name} name="action" value={name}>
            {label}
          </button>
        ))}
        <AsCommands
          commands={actions.map(([name, label]) => ({
            label: `${label}: one call for each, here for the first of the list`,
            call: ACTIONS[name].call({ environment: first.environment, company_id: first.company_id }),
          }))}
        />
      </div>
    </form>
  );
}

const keyOf = ({ environment, company_id }: CompanyModel) => `${environment}/${company_id}`;

const TICK: Column<CompanyModel> = {
  head: <span class="unseen">Selected</span>,
  label: 'Selected',
  cell: (company) => (
    <input type="checkbox" name="company" value={keyOf(company)} aria-label={`Select ${company.name ?? company.company_id}`} />
  ),
};

function columnsFor({ resource }: ListProps<CompanyModel>['filters']): readonly Column<CompanyModel>[] {
  const lists = listsColumn(resource);
  return COLUMNS.flatMap((one) => (one.label === 'Status' ? [one, lists] : [one]));
}

/** The state of the chosen list, with its reason; or of each list that is not on time. */
const listsColumn = (resource: string | undefined): Column<CompanyModel> =>
  column(resource ?? 'Lists', ({ resources }) => <ListStates lists={resources} resource={resource} />);

const COLUMNS: readonly Column<CompanyModel>[] = [
  column('Company', ({ environment, company_id, name }) => (
    <CompanyLink environment={environment} companyId={company_id} name={name} />
  )),
  ENVIRONMENT_COLUMN,
  column('Status', ({ status }) => <State of={status} />),
  counts('Rows', ({ resources }) => resources.reduce((sum, { records }) => sum + records, 0)),
  column('Proved complete', ({ resources }) => <OldestProof resources={resources} />),
  column('Next sync', ({ next_sync_at }) => <When at={next_sync_at} none="none" />),
];

function OldestProof({ resources }: Pick<CompanyModel, 'resources'>) {
  const available = resources.filter(({ state }) => state !== 'unavailable');
  const missing = available.filter(({ last_verified_at }) => last_verified_at === null);
  if (available.length === 0) return <span class="none">not yet</span>;
  if (missing.length > 0) return <span class="warn">{missing.map(({ resource }) => resource).join(', ')}: not yet</span>;
  return <When at={available.map(({ last_verified_at }) => last_verified_at!).toSorted()[0]} />;
}
