import type { CertificateModel } from '../../api/feed/certificates.js';
import { AsCommands } from '../parts/action-form.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { Choice, ENVIRONMENT_CHOICES, Filters, filtersOf, type ListResponse, listAddress, Pages } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { proofInWords } from '../parts/proof-in-words.js';
import { CompanyLink, Environment, numberText, When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';

const PATH = '/certificates';

export async function certificatesPage({ ask, query }: PageRequest): Promise<PageContent> {
  const filters = filtersOf(query, ['environment', 'company_id', 'resource']);
  const cursor = filtersOf(query, ['cursor']);
  const list = await ask<ListResponse<CertificateModel>>(
    listAddress('/api/certificates', { ...filters, ...cursor, limit: '50' }),
  );
  return { title: 'Certificates', body: <Certificates list={list} filters={filters} /> };
}

interface CertificatesProps {
  readonly list: ListResponse<CertificateModel>;
  readonly filters: Readonly<Record<string, string>>;
}

function Certificates({ list, filters }: CertificatesProps) {
  const address = useAddress();
  const keys = { label: 'The keys that check them', call: { method: 'GET', path: '/.well-known/jwks.json' } } as const;
  return (
    <>
      <h1>Certificates</h1>
      <p class="lead">
        What each verified walk proved, signed, so that others can check it without Muster: <code>muster certificates</code>{' '}
        writes them to a file. <a href={address('/.well-known/jwks.json')}>The public keys</a> are open to everybody.
      </p>
      <Filters path={PATH} controls="certificates">
        <Choice name="environment" label="Environment" chosen={filters.environment} options={ENVIRONMENT_CHOICES} />
        <label>
          <span>Company id</span>
          <input type="search" name="company_id" value={filters.company_id} maxLength={40} />
        </label>
        <label>
          <span>List</span>
          <input
            type="search"
            name="resource"
            value={filters.resource}
            maxLength={41}
            pattern="[a-z][a-z0-9_]*"
            placeholder="employees"
          />
        </label>
      </Filters>
      <section id="certificates" aria-label="Certificates found">
        <DataTable
          caption="Certificates of verified walks, newest first"
          columns={COLUMNS}
          rows={list.data}
          keyOf={({ id }) => id}
          empty={Object.keys(filters).length > 0 ? 'No certificate is like that.' : 'No walk was certified yet.'}
        />
        <Pages path={PATH} filters={filters} next={list.next_cursor} />
        <AsCommands
          commands={[{ label: 'This list', call: { method: 'GET', path: listAddress('/api/certificates', filters) } }, keys]}
        />
      </section>
    </>
  );
}

const COLUMNS: readonly Column<CertificateModel>[] = [
  column('Complete as of', ({ verified_at }) => <When at={verified_at} />),
  column('List', ({ resource }) => <b>{resource}</b>),
  column('Of which company', ({ environment, company_id, company_name }) => (
    <span class="stack">
      <CompanyLink environment={environment} companyId={company_id} name={company_name} />
      <Environment name={environment} />
    </span>
  )),
  column('Why, and the key', ({ proof, kid }) => (
    <span class="stack">
      <span>{proofInWords(proof)}</span>
      <code>{kid}</code>
    </span>
  )),
  column('Received', ({ received }) => numberText(received), { numeric: true }),
  column('Rows', ({ records }) => numberText(records), { numeric: true }),
  column('Held', ({ held }) => (held === undefined ? '–' : numberText(held)), { numeric: true }),
];
