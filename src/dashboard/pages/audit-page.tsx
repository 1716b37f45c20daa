import type { AuditEntryModel } from '../../api/operation/audit-model.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { Filters, FoundList, type ListProps, readList, Search } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, Environment, When } from '../parts/shown-values.js';

const PATH = '/audit';

export async function auditPage(request: PageRequest): Promise<PageContent> {
  const names = ['actor', 'action', 'company_id', 'environment'];
  const found = await readList<AuditEntryModel>(request, PATH, names, { limit: 100 });
  return { title: 'Audit', body: <Audit {...found} /> };
}

function Audit({ list, filters }: ListProps<AuditEntryModel>) {
  return (
    <>
      <h1>Audit</h1>
      <p class="lead">Who did what, and how it ended. Entries are only ever added.</p>
      <Filters path={PATH}>
        <Search label="Who" name="actor" value={filters.actor} maxLength={100} />
        <Search label="Did what" name="action" value={filters.action} maxLength={100} placeholder="company.sync" />
        <Search label="Company id" name="company_id" value={filters.company_id} maxLength={40} />
      </Filters>
      <FoundList path={PATH} label="Entries found" list={list} filters={filters}>
        <DataTable
          caption="Entries of the audit, newest first"
          columns={COLUMNS}
          rows={list.data}
          keyOf={({ id }) => id}
          empty={Object.keys(filters).length > 0 ? 'No entry matches.' : 'There is no entry yet.'}
        />
      </FoundList>
    </>
  );
}

const COLUMNS: readonly Column<AuditEntryModel>[] = [
  column('When', ({ at }) => <When at={at} />),
  column('Who', ({ actor, role }) => (
    <>
      {actor}
      {role && <small class="why">{role}</small>}
    </>
  )),
  column('Did what', ({ action }) => <code>{action}</code>),
  column('Company', ({ environment, company_id, company_name }) => (
    <span class="stack">
      {environment && company_id && <CompanyLink environment={environment} companyId={company_id} name={company_name} />}
      {environment ? <Environment name={environment} /> : <span class="none">none</span>}
    </span>
  )),
  column('How it ended', ({ details: { outcome = 'done' } }) =>
    outcome === 'done' ? 'done' : <span class="warn">{String(outcome)}</span>,
  ),
  column('Details', ({ details }) => <Details details={details} />),
];

function Details({ details }: Pick<AuditEntryModel, 'details'>) {
  const entries = Object.entries(details).filter(([name]) => name !== 'outcome');
  if (entries.length === 0) return null;
  return <small class="details">{entries.map(([name, value]) => `${name}: ${textOf(value)}`).join(', ')}</small>;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
