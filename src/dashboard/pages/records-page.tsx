import type { CompanyModel } from '../../api/companies/company-model.js';
import type { FoundRecordModel } from '../../api/companies/records.js';
import { isMusterError } from '../../core/errors.js';
import { AsCommands, get, useMay } from '../parts/action-form.js';
import { ofCompany } from '../parts/actions.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import { Field, Select } from '../parts/fields.js';
import type { PageContent } from '../parts/layout.js';
import { filtersOf, type ListResponse, listAddress, Pages } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { erasePath, RecordLink, useSeesValues, ValuesHidden } from '../parts/record-links.js';
import { Environment, Link } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';

const PATH = '/records';
/** Companies to choose from. */
const MOST_COMPANIES = 20;
/** A search of a large list takes several calls; a page waits for so many of them until it has a record. */
const MOST_CALLS = 3;

type Filters = Readonly<Record<string, string>>;

/** Finds a record by its company, and by its number or its name. */
export async function recordsPage({ ask, query }: PageRequest): Promise<PageContent> {
  const filters = filtersOf(query, ['company', 'environment', 'resource', 'q']);
  const companies = await findCompanies(ask, filters);
  const company = companies.length === 1 ? companies[0] : undefined;
  // Every search is audited, and opening the page is none.
  const isAsked = Object.keys(filters).length > 0;
  const found = company && isAsked ? await findRecords(ask, company, query) : undefined;
  const title = 'Records';
  return { title, body: <RecordsView filters={filters} companies={companies} company={company} found={found} /> };
}

/** The company that is meant, or those that could be. */
async function findCompanies(
  ask: PageRequest['ask'],
  { company = '', environment = '' }: Filters,
): Promise<readonly CompanyModel[]> {
  const { data } = await ask<ListResponse<CompanyModel>>(
    listAddress('/api/companies', {
      ...(company !== '' && { q: company }),
      ...(environment !== '' && { environment }),
      limit: MOST_COMPANIES,
    }),
  );
  const named = company.toLowerCase();
  const exact = data.filter(({ name, company_id }) => company_id === named || name?.toLowerCase() === named);
  return exact.length === 1 ? exact : data;
}

/** Undefined where the viewer may not see records. */
async function findRecords(
  ask: PageRequest['ask'],
  company: CompanyModel,
  query: URLSearchParams,
): Promise<ListResponse<FoundRecordModel> | undefined> {
  const filters = filtersOf(query, ['resource', 'q', 'cursor']);
  const path = `${ofCompany({ environment: company.environment, company_id: company.company_id })}/records`;
  try {
    let page = await ask<ListResponse<FoundRecordModel>>(listAddress(path, { ...filters, limit: 25 }));
    for (let calls = 1; page.data.length === 0 && page.next_cursor !== null && calls < MOST_CALLS; calls += 1)
      page = await ask<ListResponse<FoundRecordModel>>(listAddress(path, { ...filters, limit: 25, cursor: page.next_cursor }));
    return page;
  } catch (error) {
    if (isMusterError(error, 'forbidden')) return undefined;
    throw error;
  }
}

interface RecordsViewProps {
  readonly filters: Filters;
  readonly companies: readonly CompanyModel[];
  /** The company, if only one is meant. */
  readonly company: CompanyModel | undefined;
  readonly found: ListResponse<FoundRecordModel> | undefined;
}

function RecordsView({ filters, companies, company, found }: RecordsViewProps) {
  const sees = useSeesValues();
  const address = useAddress();
  return (
    <>
      <h1>Records</h1>
      <p class="lead">Find a person or another record of a company, by its number or its name. Every search is in the audit.</p>
      {!sees && <ValuesHidden />}
      {sees && (
        <form class="filters" method="get" action={address(PATH)} role="search">
          <Field label="Company, by name or id">
            <input type="search" name="company" value={company?.name ?? filters.company ?? company?.company_id} maxLength={100} />
          </Field>
          {filters.environment !== undefined && <input type="hidden" name="environment" value={filters.environment} />}
          <Field label="Number or name">
            <input type="search" name="q" value={filters.q} maxLength={2_000} autocomplete="off" />
          </Field>
          {company ? (
            <Select
              label="List"
              name="resource"
              options={[['', 'all'], ...company.resources.map(({ resource }) => [resource, resource] as const)]}
              chosen={filters.resource}
            />
          ) : (
            <Field label="List">
              <input
                type="search"
                name="resource"
                value={filters.resource}
                maxLength={41}
                pattern="[a-z][a-z0-9_]*"
                placeholder="all"
              />
            </Field>
          )}
          <button>Find</button>
        </form>
      )}
      {sees && (
        <section id="records" aria-label="Records found">
          {company && found ? (
            <Found company={company} found={found} filters={filters} />
          ) : (
            <WhichCompany companies={companies} filters={filters} />
          )}
        </section>
      )}
    </>
  );
}

function WhichCompany({ companies, filters }: Pick<RecordsViewProps, 'companies' | 'filters'>) {
  if (companies.length === 0) return <p class="empty">No company matches.</p>;
  if (filters.company === undefined && filters.q === undefined) return <p class="empty">Name a company, and press Find.</p>;
  return (
    <>
      <p>Which company?</p>
      <ul class="ids">
        {companies.map(({ environment, company_id, name }) => (
          <li key={`${environment}/${company_id}`}>
            <Link to={listAddress(PATH, { ...filters, company: company_id, environment })}>{name ?? company_id}</Link>{' '}
            <Environment name={environment} />
          </li>
        ))}
      </ul>
      {companies.length === MOST_COMPANIES && <p class="hint">There may be more: write more of the name.</p>}
    </>
  );
}

interface FoundProps {
  readonly company: CompanyModel;
  readonly found: ListResponse<FoundRecordModel>;
  readonly filters: Filters;
}

function Found({ company: { environment, company_id, name }, found, filters }: FoundProps) {
  const may = useMay();
  const of = { environment, company_id };
  const columns: Column<FoundRecordModel>[] = [
    column('Record', ({ resource, id, label }) => <RecordLink {...of} resource={resource} id={id} label={label} />),
    column('Id', ({ id }) => <code class="long">{id}</code>),
    column('List', ({ resource }) => resource),
  ];
  if (may('record.forget'))
    columns.push(
      column('Erase', ({ resource, id, label }) => (
        <Link to={erasePath({ ...of, resource, id })}>
          Erase…<span class="unseen"> {label}</span>
        </Link>
      )),
    );
  const { q, resource } = filters;
  const asked = { ...(resource !== undefined && { resource }), ...(q !== undefined && { q }) };
  const path = `${ofCompany(of)}/records`;
  return (
    <>
      <p>
        In <Link to={`/companies/${environment}/${company_id}`}>{name ?? company_id}</Link> <Environment name={environment} />
      </p>
      <DataTable
        caption="Records found"
        columns={columns}
        rows={found.data}
        keyOf={({ resource: list, id }) => `${list} ${id}`}
        empty={
          found.next_cursor === null ? 'No living record matches.' : 'None yet: the list is long. The next page searches on.'
        }
      />
      <Pages path={PATH} filters={{ ...filters, company: company_id, environment }} next={found.next_cursor} />
      <AsCommands commands={[get('These records', listAddress(path, asked))]} />
    </>
  );
}
