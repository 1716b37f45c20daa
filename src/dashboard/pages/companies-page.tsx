import { type CompanyModel, ListStateName } from '../../api/companies/company-model.js';
import type { ListCountsModel } from '../../api/operation/list-counts.js';
import { CONNECTION_ORDERS, type ConnectionOrder } from '../../db/tables/connection-list.js';
import { ActionForm, AsCommands, FormFields, get, useMay } from '../parts/action-form.js';
import { ACTIONS } from '../parts/actions.js';
import { counts, ENVIRONMENT as ENVIRONMENT_COLUMN } from '../parts/columns.js';
import { type Column, column } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { StateCounts } from '../parts/list-counts.js';
import { choice, ENVIRONMENT, FoundTable, filtersOf, type ListProps, listAddress, listPage, search } from '../parts/list-page.js';
import { ListStates } from '../parts/list-state.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, companyCount, Link, numberText, State, When } from '../parts/shown-values.js';
import { useAddress, useHere } from '../parts/view.js';

export const OF_SELECTED = [
  ['company.sync', 'Sync selected'],
  ['company.full', 'Full resync of selected'],
  ['company.pause', 'Pause selected'],
  ['company.resume', 'Resume selected'],
] as const;

/** The filters that choose companies; the others are about their order. */
export const CHOOSING = ['q', 'status', 'state', 'environment', 'resource', 'proof'] as const;

/** The buttons for all companies that match the filters. */
export const OF_MATCHING = [
  ['company.sync', 'Sync now'],
  ['company.full', 'Full resync'],
  ['company.pause', 'Pause'],
  ['company.resume', 'Resume'],
] as const;

const ORDERS: Readonly<Record<ConnectionOrder, string>> = {
  worst: 'worst first',
  name: 'A to Z',
  status: 'active first',
  records: 'fewest rows first',
  proved: 'oldest proof first',
  next_sync: 'next sync first',
};

const DIRECTION = choice('Direction', ['desc'], { none: 'as named', textOf: () => 'reversed' });

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
  hasCsv: true,
};

/** The counts by state are of all lists, so that a person sees which filter finds what. */
export async function companiesPage(request: PageRequest): Promise<PageContent> {
  const { data: byList } = await request.ask<{ data: readonly ListCountsModel[] }>('/api/list-counts');
  const resources = [...new Set(byList.map(({ resource }) => resource))];
  const page = listPage<CompanyModel>({
    ...PARTS,
    filters: {
      q: search('Name or id', 100),
      status: choice('Status', ['active', 'reauthorization_required', 'paused']),
      resource: choice('List', resources, { none: 'any', textOf: (resource) => resource }),
      state: choice('With a list that is', ListStateName.options),
      environment: ENVIRONMENT,
      proof: (_name, { proof }) => (proof === undefined ? null : <input type="hidden" name="proof" value={proof} />),
      sort: choice('Order', CONNECTION_ORDERS, { none: 'by id', textOf: (order) => ORDERS[order as ConnectionOrder] }),
      order: (name, filters) => (filters.sort === undefined ? null : DIRECTION(name, filters)),
    },
    Items: (found) => (
      <>
        <StateCounts counts={byList} filters={found.filters} />
        <MakeLinks {...found} />
        <Companies {...found} />
      </>
    ),
    useFurtherCommands: () => [get('The counts by state', '/api/list-counts')],
  });
  return page(request);
}

function Companies(found: ListProps<CompanyModel>) {
  const address = useAddress();
  const here = useHere();
  const may = useMay();
  const actions = OF_SELECTED.filter(([name]) => may(name));
  const [first] = found.list.data;
  const table = (
    <FoundTable
      {...found}
      caption="Companies, their status and the last proof of their lists"
      columns={[...(actions.length > 0 ? [TICK] : []), ...columnsFor(found.filters)]}
      keyOf={keyOf}
      empty={['No company matches.', <FirstCompany />]}
    />
  );
  if (actions.length === 0 || !first) return table;
  if (new URLSearchParams(here.split('?')[1]).has('all')) return <AllThatMatch {...found} />;
  return (
    <form method="post" action={address('/act/selection')}>
      <FormFields fields={{ back: here }} />
      <SelectAll {...found} />
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

/** The links of all companies that must authorize again. The call knows no filter but the environment, so the button is absent where others narrow the list. */
function MakeLinks({ list: { data }, filters }: ListProps<CompanyModel>) {
  const { status, environment, sort: _sort, order: _order, ...others } = filters;
  if (status !== 'reauthorization_required' || data.length === 0 || Object.keys(others).length > 0) return null;
  return (
    <div class="actions">
      <ActionForm name="connect_links.create" fields={environment === undefined ? {} : { environment }} />
    </div>
  );
}

/** Leads to the buttons for all companies that match, whatever page of the list they are on. */
function SelectAll({ list: { total = 0 }, filters }: ListProps<CompanyModel>) {
  if (total < 2) return null;
  return (
    <p class="select-all">
      <Link to={listAddress('/companies', { ...filters, all: '1' })}>{`Select all ${numberText(total)} that match`}</Link>
    </p>
  );
}

/** The buttons for all companies that match. The server finds them when the person confirms, and asks again if their number has changed. */
function AllThatMatch({ list, filters }: ListProps<CompanyModel>) {
  const address = useAddress();
  const may = useMay();
  const { total = 0 } = list;
  const chosen = filtersOf(new URLSearchParams(filters), CHOOSING);
  const single = listAddress('/companies', filters);
  return (
    <form method="post" action={address('/act/matching')}>
      <FormFields fields={{ match: new URLSearchParams(chosen).toString(), count: String(total), back: single }} />
      <div class="notice" role="group" aria-label="With all companies that match">
        <p>
          <b>{`All ${companyCount(total)} that match are selected`}</b>, those on other pages, too.{' '}
          <Link to={single}>Select single companies</Link>
        </p>
        <p class="selection">
          {OF_MATCHING.filter(([name]) => may(name)).map(([name, label]) => (
            <button key={name} name="action" value={name} aria-label={`${label}: all ${companyCount(total)} that match`}>
              {label}
            </button>
          ))}
        </p>
      </div>
      <FoundTable
        list={list}
        filters={filters}
        caption="Companies that match, their status and the last proof of their lists"
        columns={COLUMNS}
        keyOf={keyOf}
        empty={['No company matches.', 'No company is connected yet.']}
      />
    </form>
  );
}

function FirstCompany() {
  return (
    <>No company is connected yet. {useMay()('connect_link.create') && <Link to="/companies/connect">Connect a company</Link>}</>
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
  column(
    'Company',
    ({ environment, company_id, name }) => <CompanyLink environment={environment} companyId={company_id} name={name} />,
    { sort: 'name' },
  ),
  ENVIRONMENT_COLUMN,
  column('Status', ({ status }) => <State of={status} />, { sort: 'status' }),
  {
    ...counts<CompanyModel>('Rows', ({ resources }) => resources.reduce((sum, { records }) => sum + records, 0)),
    sort: 'records',
    isLargestFirst: true,
  },
  column('Proved complete', ({ resources }) => <OldestProof resources={resources} />, { sort: 'proved' }),
  column('Next sync', ({ next_sync_at }) => <When at={next_sync_at} none="none" isBrief />, { sort: 'next_sync' }),
];

function OldestProof({ resources }: Pick<CompanyModel, 'resources'>) {
  const available = resources.filter(({ state }) => state !== 'unavailable');
  const missing = available.filter(({ last_verified_at }) => last_verified_at === null);
  if (available.length === 0) return <span class="none">not yet</span>;
  if (missing.length > 0) return <span class="warn">{missing.map(({ resource }) => resource).join(', ')}: not yet</span>;
  return <When at={available.map(({ last_verified_at }) => last_verified_at!).toSorted()[0]} isBrief />;
}
