import type { AuditEntryModel } from '../../api/operation/audit-model.js';
import { type Column, column } from '../parts/data-table.js';
import { COMPANY, FoundTable, HIDDEN, listPage, ONE_COMPANY, search } from '../parts/list-page.js';
import { CompanyLink, Environment, When } from '../parts/shown-values.js';

export const auditPage = listPage<AuditEntryModel>({
  path: '/audit',
  title: 'Audit',
  limit: 100,
  lead: 'Who did what, and how it ended. Entries are only ever added.',
  filters: {
    actor: search('Who', 100),
    action: search('Did what', 100, { placeholder: 'company.sync' }),
    company: COMPANY,
    company_id: ONE_COMPANY,
    environment: HIDDEN,
  },
  label: 'Entries found',
  hasCsv: true,
  Items: (found) => (
    <FoundTable
      {...found}
      caption="Entries of the audit, newest first"
      columns={COLUMNS}
      empty={['No entry matches.', 'There is no entry yet.']}
    />
  ),
});

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
