import type { CertificateModel } from '../../api/feed/certificates.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import {
  Choice,
  ENVIRONMENT_CHOICES,
  Filters,
  FoundList,
  type ListProps,
  ResourceSearch,
  readList,
  Search,
} from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { proofInWords } from '../parts/proof-in-words.js';
import { CompanyLink, Environment, numberText, When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';

const PATH = '/certificates';

export async function certificatesPage(request: PageRequest): Promise<PageContent> {
  const names = ['environment', 'company_id', 'resource'];
  const found = await readList<CertificateModel>(request, PATH, names, { limit: 50 });
  return { title: 'Certificates', body: <Certificates {...found} /> };
}

function Certificates({ list, filters }: ListProps<CertificateModel>) {
  const address = useAddress();
  const keys = { label: 'The keys that check them', call: { method: 'GET', path: '/.well-known/jwks.json' } } as const;
  return (
    <>
      <h1>Certificates</h1>
      <p class="lead">
        Signed proofs of verified walks, which others can check without Muster: <code>muster certificates</code> writes them to a
        file. <a href={address('/.well-known/jwks.json')}>The public keys</a> need no token.
      </p>
      <Filters path={PATH}>
        <Choice name="environment" label="Environment" chosen={filters.environment} options={ENVIRONMENT_CHOICES} />
        <Search label="Company id" name="company_id" value={filters.company_id} maxLength={40} />
        <ResourceSearch value={filters.resource} />
      </Filters>
      <FoundList path={PATH} label="Certificates found" list={list} filters={filters} commands={[keys]}>
        <DataTable
          caption="Certificates of verified walks, newest first"
          columns={COLUMNS}
          rows={list.data}
          keyOf={({ id }) => id}
          empty={Object.keys(filters).length > 0 ? 'No certificate matches.' : 'No walk was certified yet.'}
        />
      </FoundList>
    </>
  );
}

const COLUMNS: readonly Column<CertificateModel>[] = [
  column('Complete as of', ({ verified_at }) => <When at={verified_at} />),
  column('List', ({ resource }) => <b>{resource}</b>),
  column('Company', ({ environment, company_id, company_name }) => (
    <span class="stack">
      <CompanyLink environment={environment} companyId={company_id} name={company_name} />
      <Environment name={environment} />
    </span>
  )),
  column('Proof and key', ({ proof, kid }) => (
    <span class="stack">
      <span>{proofInWords(proof)}</span>
      <code>{kid}</code>
    </span>
  )),
  column('Received', ({ received }) => numberText(received), { numeric: true }),
  column('Rows', ({ records }) => numberText(records), { numeric: true }),
  column('Held', ({ held }) => (held === undefined ? '–' : numberText(held)), { numeric: true }),
];
