import type { CertificateModel } from '../../api/feed/certificates.js';
import { get } from '../parts/action-form.js';
import { counts } from '../parts/columns.js';
import { type Column, column } from '../parts/data-table.js';
import { COMPANY, ENVIRONMENT, FoundTable, listPage, ONE_COMPANY, RESOURCE } from '../parts/list-page.js';
import { proofInWords } from '../parts/proof-in-words.js';
import { CompanyLink, Environment, Link, numberText, When } from '../parts/shown-values.js';

const KEYS = '/.well-known/jwks.json';

export const certificatesPage = listPage<CertificateModel>({
  path: '/certificates',
  title: 'Certificates',
  limit: 50,
  lead: (
    <>
      Signed proofs of verified walks, which others can check without Muster: <code>muster certificates</code> writes them to a
      file. <Link to={KEYS}>The public keys</Link> need no token.
    </>
  ),
  filters: { environment: ENVIRONMENT, company: COMPANY, company_id: ONE_COMPANY, resource: RESOURCE },
  label: 'Certificates found',
  Items: (found) => (
    <FoundTable
      {...found}
      caption="Certificates of verified walks, newest first"
      columns={COLUMNS}
      empty={['No certificate matches.', 'No walk was certified yet.']}
    />
  ),
  useFurtherCommands: () => [get('The keys that check them', KEYS)],
});

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
  counts('Received', ({ received }) => received),
  counts('Rows', ({ records }) => records),
  column('Held', ({ held }) => (held === undefined ? '–' : numberText(held)), { numeric: true }),
];
