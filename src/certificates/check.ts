import { compactVerify, createLocalJWKSet, decodeProtectedHeader, errors, type JSONWebKeySet } from 'jose';
import { ALGORITHM, digestOf, MANIFEST_TYPE, TYPE } from './certificate.js';
import { ManifestClaims, Statement } from './statement.js';

/** A certificate to check, and its place: "certificates.jws, line 3". */
export interface GivenCertificate {
  readonly where: string;
  readonly jws: string;
}

export interface CheckedCertificate extends GivenCertificate {
  readonly kid: string;
  readonly statement: Statement;
}

/** A signed manifest of an export. `text` is the manifest as it was signed. */
export interface CheckedManifest extends GivenCertificate {
  readonly kid: string;
  readonly text: string;
  readonly manifest: ManifestClaims;
}

/** A problem, in words. */
export interface Finding {
  readonly where: string;
  readonly problem: string;
}

export interface CheckOutcome {
  /** Certificates with a valid signature. */
  readonly signed: readonly CheckedCertificate[];
  /** Manifests with a valid signature. */
  readonly manifests: readonly CheckedManifest[];
  readonly findings: readonly Finding[];
  /** The first certificates of lists whose earlier certificates are not given. Nothing is known of the time before them. */
  readonly middles: readonly CheckedCertificate[];
}

type Keys = ReturnType<typeof createLocalJWKSet>;

/**
 * Checks the signatures of certificates and manifests, and that each certificate of a list follows the one that it names. Throws JOSEError if the
 * keys are not a JWK set.
 */
export async function checkCertificates(given: readonly GivenCertificate[], jwks: JSONWebKeySet): Promise<CheckOutcome> {
  const keys = createLocalJWKSet(jwks);
  const signed: CheckedCertificate[] = [];
  const manifests: CheckedManifest[] = [];
  const findings: Finding[] = [];
  const middles: CheckedCertificate[] = [];
  const lists = new Map<string, Map<string, CheckedCertificate>>();
  for (const certificate of given) {
    const checked = await checkOne(certificate, keys);
    if ('problem' in checked) {
      findings.push(checked);
      continue;
    }
    if ('manifest' in checked) {
      manifests.push(checked);
      findings.push(...(await checkNamed(checked, keys)));
      continue;
    }
    signed.push(checked);
    const name = listOf(checked.statement);
    const list = lists.get(name) ?? new Map<string, CheckedCertificate>();
    lists.set(name, list.set(digestOf(checked.jws), checked));
  }
  for (const list of lists.values()) {
    const inOrder = inOrderOfProofs(list);
    findings.push(...checkChain(list, inOrder));
    const [first] = inOrder;
    if (first && first.statement.previous !== null && !list.has(first.statement.previous)) middles.push(first);
  }
  return { signed, manifests, findings, middles };
}

/** Checks that the certificates in a manifest are signed and belong to its lists. */
async function checkNamed({ where, manifest }: CheckedManifest, keys: Keys): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { environment, company_id, certificates } of manifest.lists) {
    const list = `${environment} ${company_id} ${manifest.resource}`;
    for (const jws of certificates) {
      const checked = await checkOne({ where, jws }, keys);
      if ('problem' in checked) findings.push({ where, problem: `has a certificate of ${list} that ${checked.problem}` });
      else if ('manifest' in checked || listOf(checked.statement) !== list)
        findings.push({ where, problem: `has for a certificate of ${list} one of something else` });
    }
  }
  return findings;
}

function listOf({ environment, company_id, resource }: Statement): string {
  return `${environment} ${company_id} ${resource}`;
}

async function checkOne({ where, jws }: GivenCertificate, keys: Keys): Promise<CheckedCertificate | CheckedManifest | Finding> {
  const parts = jws.split('.');
  if (parts.length !== 3 || !parts.every(isCanonical))
    return { where, problem: 'is no certificate: that is three parts in base64url with a dot between two, and nothing else' };
  try {
    const { protectedHeader, payload } = await compactVerify(jws, keys, { algorithms: [ALGORITHM] });
    const { typ, kid = '' } = protectedHeader;
    if (typ !== TYPE && typ !== MANIFEST_TYPE)
      return { where, problem: 'is signed, but is no certificate: its header says what it is' };
    const text = Buffer.from(payload).toString();
    const said = (typ === TYPE ? Statement : ManifestClaims).safeParse(JSON.parse(text));
    if (!said.success) return { where, problem: 'is signed, but lacks what this version of Muster expects to be said' };
    return 'sha256' in said.data ? { where, jws, kid, text, manifest: said.data } : { where, jws, kid, statement: said.data };
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey)
      return { where, problem: `is signed by the key ${decodeProtectedHeader(jws).kid}, which is not among the keys given` };
    if (error instanceof errors.JWSSignatureVerificationFailed)
      return { where, problem: 'does not hold: it was changed, or signed with another key under the name of a given key' };
    if (error instanceof errors.JOSEError || error instanceof SyntaxError)
      return { where, problem: 'is no certificate: its header or what it says cannot be read' };
    throw error;
  }
}

/** Decoders ignore the spare bits at the end of base64url, so a text with other spare bits would have the same signature. */
function isCanonical(part: string): boolean {
  return part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part;
}

function inOrderOfProofs(list: ReadonlyMap<string, CheckedCertificate>): CheckedCertificate[] {
  return [...list.values()].toSorted((a, b) => (a.statement.verified_at < b.statement.verified_at ? -1 : 1));
}

/** Checks the chain of one list's signed certificates, given by their digests. The oldest may name one that is not given. */
function checkChain(list: ReadonlyMap<string, CheckedCertificate>, inOrder: readonly CheckedCertificate[]): Finding[] {
  const followed = new Map<string, CheckedCertificate>();
  const findings: Finding[] = [];
  for (const [n, certificate] of inOrder.entries()) {
    const { where, statement } = certificate;
    const { previous, feed } = statement;
    const before = previous === null ? undefined : list.get(previous);
    const rival = previous === null ? undefined : followed.get(previous);
    if (previous !== null) followed.set(previous, certificate);
    if (rival)
      findings.push({ where, problem: `follows the same certificate as ${rival.where}: of two, one was made in a copy` });
    else if (before && before.statement.feed.through !== feed.after)
      findings.push({
        where,
        problem: `begins at ${feed.after} in the feed, but the one before it ends at ${before.statement.feed.through}`,
      });
    else if (!before && n > 0)
      findings.push({
        where,
        problem: `does not follow ${inOrder[n - 1]!.where}: one between them is missing, or does not hold`,
      });
  }
  return findings;
}
