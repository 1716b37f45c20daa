import type { CertificateModel } from '../../api/feed/certificates.js';
import { get } from '../parts/action-form.js';
import { counts } from '../parts/columns.js';
import { type Column, column } from '../parts/data-table.js';
import { Field } from '../parts/fields.js';
import { COMPANY, ENVIRONMENT, FoundTable, HIDDEN, listPage, ONE_COMPANY, RESOURCE } from '../parts/list-page.js';
import { proofName } from '../parts/proof-in-words.js';
import { Environment, Link, numberText, When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';
import { KEYS } from './certificate-page.js';

export const certificatesPage = listPage<CertificateModel>({
  path: '/certificates',
  title: 'Certificates',
  limit: 50,
  lead: (
    <>
      Signed proofs that a list was complete, which others can check without Muster. <Link to={KEYS}>The public keys</Link> need
      no token; <code>muster certificates</code> writes many certificates to a file.
    </>
  ),
  filters: {
    company: COMPANY,
    resource: RESOURCE,
    day: (name, filters) => (
      <Field label="Complete as of">
        <input type="date" name={name} value={filters[name]} />
      </Field>
    ),
    environment: ENVIRONMENT,
    company_id: ONE_COMPANY,
    since: HIDDEN,
    until: HIDDEN,
  },
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
      <Link class={company_name ? undefined : 'id'} to={`/companies/${environment}/${company_id}`}>
        {company_name || company_id}
      </Link>
      <Environment name={environment} />
    </span>
  )),
  column('Proof', ({ proof }) => proofName(proof)),
  counts('Received', ({ received }) => received),
  counts('Rows', ({ records }) => records),
  column('Held', ({ held }) => (held === undefined ? '–' : numberText(held)), { numeric: true }),
  column('Certificate', (certificate) => <Certificate certificate={certificate} />),
];

function Certificate({ certificate: { id, resource, company_name, company_id } }: { readonly certificate: CertificateModel }) {
  const address = useAddress();
  const what = <span class="unseen">{`: ${resource} of ${company_name ?? company_id}, number ${id}`}</span>;
  return (
    <span class="stack">
      <Link to={`/certificates/${id}`}>Show{what}</Link>
      <a href={address(`/certificates/${id}/jws`)} download>
        Download{what}
      </a>
    </span>
  );
}
