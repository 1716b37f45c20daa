import anyAscii from 'any-ascii';
import type { CertificateModel } from '../../api/feed/certificates.js';
import { AsCommands, get } from '../parts/action-form.js';
import type { PageContent } from '../parts/layout.js';
import { listAddress } from '../parts/list-page.js';
import type { Download, PageRequest } from '../parts/page-request.js';
import { assumptionsOf, proofInWords } from '../parts/proof-in-words.js';
import { CompanyLink, Environment, Fact, Link, numberText, When } from '../parts/shown-values.js';
import { wholeText } from '../parts/times.js';
import { useAddress, useView } from '../parts/view.js';

export const KEYS = '/.well-known/jwks.json';

export async function certificatePage({ ask, params: { id = '' } }: PageRequest): Promise<PageContent> {
  const certificate = await ask<CertificateModel>(`/api/certificates/${encodeURIComponent(id)}`);
  return { title: titleOf(certificate), body: <CertificateView certificate={certificate} /> };
}

const nameOf = ({ company_name, company_id }: CertificateModel) => company_name ?? company_id;
const titleOf = (certificate: CertificateModel) => `Certificate: ${certificate.resource} of ${nameOf(certificate)}`;

export async function certificateDownload({ ask, params: { id = '' } }: PageRequest): Promise<Download> {
  const certificate = await ask<CertificateModel>(`/api/certificates/${encodeURIComponent(id)}`);
  return { name: fileOf(certificate), type: 'application/jose', text: `${certificate.jws}\n` };
}

/** All keys: a certificate is checked together with older ones, which other keys have signed. */
export async function keysDownload({ ask, params: { id = '' } }: PageRequest): Promise<Download> {
  const certificate = await ask<CertificateModel>(`/api/certificates/${encodeURIComponent(id)}`);
  const keys = await ask<object>(KEYS);
  return { name: `${fileOf(certificate)}.jwks.json`, type: 'application/json', text: `${JSON.stringify(keys, undefined, 2)}\n` };
}

/** The name of the downloaded file; `muster certificate check` finds the keys next to it by the same name and `.jwks.json`. */
function fileOf(certificate: CertificateModel): string {
  const { resource, verified_at, id } = certificate;
  const company = anyAscii(nameOf(certificate))
    .replaceAll(/[^\w]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return `${[company.slice(0, 40) || certificate.company_id, resource, verified_at.slice(0, 10), id].join('_')}.jws`;
}

function CertificateView({ certificate }: { readonly certificate: CertificateModel }) {
  const { id, environment, company_id, company_name, resource, run_id } = certificate;
  return (
    <article class="certificate">
      <div class="head">
        <div>
          <h1>{titleOf(certificate)}</h1>
          <p class="under">
            <Environment name={environment} />
            <CompanyLink environment={environment} companyId={company_id} name={company_name} />
          </p>
        </div>
        <Downloads id={id} />
      </div>
      <Claim certificate={certificate} />
      <Counts certificate={certificate} />
      <Proof certificate={certificate} />
      <Signature certificate={certificate} />
      <HowToCheck file={fileOf(certificate)} />
      <p>
        <Link to={listAddress('/certificates', { environment, company_id, resource })}>All certificates of this list</Link>
        {' · '}
        <Link to={`/runs/${run_id}`}>The run</Link>
      </p>
      <AsCommands commands={[get('This certificate', `/api/certificates/${id}`), get('The keys that check it', KEYS)]} />
    </article>
  );
}

function Downloads({ id }: { readonly id: string }) {
  const address = useAddress();
  return (
    <div class="actions">
      <a class="button" href={address(`/certificates/${id}/jws`)} download>
        Download as JWS
      </a>
      <a class="button quiet" href={address(`/certificates/${id}/jwks`)} download>
        Download the keys
      </a>
    </div>
  );
}

/** The statement in one sentence, with exact times: a printed page is read later. */
function Claim({ certificate }: { readonly certificate: CertificateModel }) {
  const { resource, records, received, verified_at, finished_at, held = 0 } = certificate;
  const { timezone } = useView();
  const exact = (at: string) => wholeText(Date.parse(at), timezone);
  return (
    <>
      <p class="lead">
        This installation states: every record of <b>{resource}</b> that {nameOf(certificate)} had in the service from{' '}
        {exact(verified_at)} until {exact(finished_at)} was received. {numberText(received)} were received, and the copy of the
        list then had {numberText(records)} rows.
      </p>
      {held > 0 && <Held certificate={certificate} held={held} />}
    </>
  );
}

function Held({ certificate, held }: { readonly certificate: CertificateModel; readonly held: number }) {
  const { environment, company_id } = certificate;
  return (
    <p class="notice warn">
      {numberText(held)} of these rows {held === 1 ? 'was' : 'were'} not in the service any more. A hold kept{' '}
      {held === 1 ? 'it' : 'them'} from being deleted until a person decides.{' '}
      <Link to={listAddress('/holds', { environment, company_id, status: '' })}>Holds of the company</Link>
    </p>
  );
}

function Counts({ certificate }: { readonly certificate: CertificateModel }) {
  const { verified_at, finished_at, received, total_records, records, held, grant_number, feed } = certificate;
  return (
    <dl class="facts">
      <Fact name="Complete as of">
        <When at={verified_at} />
      </Fact>
      <Fact name="Reading ended">
        <When at={finished_at} />
      </Fact>
      <Fact name="Received">{numberText(received)}</Fact>
      <Fact name="Total that the service named">{total_records === null ? 'none' : numberText(total_records)}</Fact>
      <Fact name="Rows of the copy">{numberText(records)}</Fact>
      <Fact name="Kept by a hold">{held === undefined ? 'not recorded' : numberText(held)}</Fact>
      <Fact name="Authorization">{grant_number === undefined ? 'not recorded' : `grant ${grant_number}`}</Fact>
      <Fact name="Changes since the certificate before">
        {feed.through === feed.after ? 'none' : `${feed.after + 1} to ${feed.through} of the feed`}
      </Fact>
    </dl>
  );
}

function Proof({ certificate: { proof } }: { readonly certificate: CertificateModel }) {
  return (
    <>
      <h2>How it was proved</h2>
      <p class="proof good">{proofInWords(proof)}</p>
      <h2>What it rests on</h2>
      <ul>
        {assumptionsOf(proof).map((assumption) => (
          <li key={assumption}>{assumption}</li>
        ))}
      </ul>
    </>
  );
}

function Signature({ certificate: { kid, jws, previous, catalogue } }: { readonly certificate: CertificateModel }) {
  return (
    <>
      <h2>Signature</h2>
      <dl class="facts wide">
        <Fact name="Key">
          <code>{kid}</code>
        </Fact>
        <Fact name="Algorithm">Ed25519 (EdDSA), a compact JWS</Fact>
        <Fact name="Certificate before it (SHA-256)">
          {previous === null ? 'none: this is the first of the list' : <code>{previous}</code>}
        </Fact>
        <Fact name="Catalogue entry (SHA-256)">
          <code>{catalogue}</code>
        </Fact>
      </dl>
      <h3 id="jws">The certificate</h3>
      <pre class="whole" tabIndex={0} aria-labelledby="jws">
        {jws}
      </pre>
    </>
  );
}

function HowToCheck({ file }: { readonly file: string }) {
  const { publicUrl } = useView();
  return (
    <>
      <h2>How to check it</h2>
      <p>Download both files into one folder. The check needs neither this installation nor its database or network:</p>
      <pre class="whole" tabIndex={0} aria-label="Command that checks the certificate">{`muster certificate check ${file}`}</pre>
      <p>
        Any program that knows JWS (RFC 7515) and Ed25519 checks it as well. Keys that came together with a certificate prove only
        that both match. Get the keys, or their ids, once by a way that you trust: <code>{publicUrl + KEYS}</code> has the public
        keys and needs no token.
      </p>
    </>
  );
}
