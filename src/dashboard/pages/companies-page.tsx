import { type CompanyModel, ListStateName } from '../../api/companies/company-model.js';
import { AsCommands, FormFields, useMay } from '../parts/action-form.js';
import { ACTIONS } from '../parts/actions.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { Choice, ENVIRONMENT_CHOICES, Filters, FoundList, type ListProps, readList, Search } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, Environment, numberText, State, stateText, When } from '../parts/shown-values.js';
import { useAddress, useView } from '../parts/view.js';

const PATH = '/companies';
const STATUSES = ['active', 'reauthorization_required', 'paused'].map((status) => [status, stateText(status)] as const);
const LIST_STATE_CHOICES = ListStateName.options.map((state) => [state, stateText(state)] as const);

export const OF_SELECTED = [
  ['company.sync', 'Sync selected'],
  ['company.full', 'Full resync of selected'],
  ['company.pause', 'Pause selected'],
  ['company.resume', 'Resume selected'],
] as const;

export async function companiesPage(request: PageRequest): Promise<PageContent> {
  const names = ['q', 'status', 'environment', 'resource', 'state', 'sort'];
  const found = await readList<CompanyModel>(request, PATH, names, { limit: 50 });
  return { title: 'Companies', body: <Companies {...found} /> };
}

function Companies({ list, filters }: ListProps<CompanyModel>) {
  const address = useAddress();
  const may = useMay();
  return (
    <>
      <div class="head">
        <h1>Companies</h1>
        {may('connect_link.create') && (
          <a class="button" href={address('/companies/connect')}>
            Connect a company
          </a>
        )}
      </div>
      <Filters path={PATH}>
        <Search label="Name or id" name="q" value={filters.q} maxLength={100} />
        <Choice name="status" label="Status" chosen={filters.status} options={STATUSES} />
        <Choice name="state" label="With a list that is" chosen={filters.state} options={LIST_STATE_CHOICES} />
        <Choice name="environment" label="Environment" chosen={filters.environment} options={ENVIRONMENT_CHOICES} />
        <Choice name="sort" label="Order" none="by id" chosen={filters.sort} options={[['worst', 'worst first']]} />
      </Filters>
      <FoundList path={PATH} label="Companies found" list={list} filters={filters}>
        <CompanyTable rows={list.data} isFiltered={Object.keys(filters).length > 0} />
      </FoundList>
    </>
  );
}

function CompanyTable({ rows, isFiltered }: { readonly rows: readonly CompanyModel[]; readonly isFiltered: boolean }) {
  const address = useAddress();
  const { address: here } = useView();
  const may = useMay();
  const actions = OF_SELECTED.filter(([name]) => may(name));
  const [first] = rows;
  const table = (
    <DataTable
      caption="Companies, their status and the last proof of their lists"
      columns={actions.length > 0 ? [TICK, ...COLUMNS] : COLUMNS}
      rows={rows}
      keyOf={keyOf}
      empty={isFiltered ? 'No company matches.' : 'No company is connected yet.'}
    />
  );
  if (actions.length === 0 || rows.length === 0) return table;
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
        {first && (
          <AsCommands
            commands={actions.map(([name, label]) => ({
              label: `${label}: one call for each, here for the first of the list`,
              call: ACTIONS[name].call({ environment: first.environment, company_id: first.company_id }),
            }))}
          />
        )}
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

const COLUMNS: readonly Column<CompanyModel>[] = [
  column('Company', ({ environment, company_id, name }) => (
    <CompanyLink environment={environment} companyId={company_id} name={name} />
  )),
  column('Environment', ({ environment }) => <Environment name={environment} />),
  column('Status', ({ status }) => <State of={status} />),
  column('Rows', ({ resources }) => numberText(resources.reduce((sum, { records }) => sum + records, 0)), { numeric: true }),
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
