import type { AuditEntryModel } from '../../api/operation/audit-model.js';
import { AsCommands } from '../parts/action-form.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { Filters, filtersOf, type ListResponse, listAddress, Pages } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, Environment, When } from '../parts/shown-values.js';

const PATH = '/audit';

export async function auditPage({ ask, query }: PageRequest): Promise<PageContent> {
  const filters = filtersOf(query, ['actor', 'action', 'company_id', 'environment']);
  const cursor = filtersOf(query, ['cursor']);
  const list = await ask<ListResponse<AuditEntryModel>>(listAddress('/api/audit', { ...filters, ...cursor, limit: '100' }));
  return { title: 'Audit', body: <Audit list={list} filters={filters} /> };
}

function Audit({
  list,
  filters,
}: {
  readonly list: ListResponse<AuditEntryModel>;
  readonly filters: Readonly<Record<string, string>>;
}) {
  return (
    <>
      <h1>Audit</h1>
      <p class="lead">Who asked for what, and how it ended. Entries are only ever added.</p>
      <Filters path={PATH} controls="audit">
        <label>
          <span>Who</span>
          <input type="search" name="actor" value={filters.actor} maxLength={100} />
        </label>
        <label>
          <span>Did what</span>
          <input type="search" name="action" value={filters.action} maxLength={100} placeholder="company.sync" />
        </label>
        <label>
          <span>Company id</span>
          <input type="search" name="company_id" value={filters.company_id} maxLength={40} />
        </label>
      </Filters>
      <section id="audit" aria-label="Entries found">
        <DataTable
          caption="Entries of the audit, newest first"
          columns={COLUMNS}
          rows={list.data}
          keyOf={({ id }) => id}
          empty={Object.keys(filters).length > 0 ? 'No entry is like that.' : 'Nobody has asked for anything yet.'}
        />
        <Pages path={PATH} filters={filters} next={list.next_cursor} />
        <AsCommands commands={[{ label: 'This list', call: { method: 'GET', path: listAddress('/api/audit', filters) } }]} />
      </section>
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
  column('Of which company', ({ environment, company_id, company_name }) => (
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
