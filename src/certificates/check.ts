import { compactVerify, createLocalJWKSet, decodeProtectedHeader, errors, type JSONWebKeySet } from 'jose';
import { ALGORITHM, digestOf, TYPE } from './certificate.js';
import { Statement } from './statement.js';

/** A certificate as somebody has it, and where: "certificates.jws, line 3". */
export interface GivenCertificate {
  readonly where: string;
  readonly jws: string;
}

export interface CheckedCertificate extends GivenCertificate {
  readonly kid: string;
  readonly statement: Statement;
}

/** What does not hold, in words. */
interface Finding {
  readonly where: string;
  readonly problem: string;
}

type Keys = ReturnType<typeof createLocalJWKSet>;

/**
 * Holds certificates against keys, and those of one list against each other: that they are signed, and that each follows the one that it names.
 * `signed` are those whose signatures are right. Throws JOSEError for keys that are no JWK set.
 */
export async function checkCertificates(
  given: readonly GivenCertificate[],
  jwks: JSONWebKeySet,
): Promise<{ readonly signed: readonly CheckedCertificate[]; readonly findings: readonly Finding[] }> {
  const keys = createLocalJWKSet(jwks);
  const signed: CheckedCertificate[] = [];
  const findings: Finding[] = [];
  const lists = new Map<string, Map<string, CheckedCertificate>>();
  for (const certificate of given) {
    const checked = await checkOne(certificate, keys);
    if ('problem' in checked) {
      findings.push(checked);
      continue;
    }
    signed.push(checked);
    const { environment, company_id, resource } = checked.statement;
    const name = `${environment} ${company_id} ${resource}`;
    const list = lists.get(name) ?? new Map<string, CheckedCertificate>();
    lists.set(name, list.set(digestOf(checked.jws), checked));
  }
  for (const list of lists.values()) findings.push(...checkChain(list));
  return { signed, findings };
}

async function checkOne({ where, jws }: GivenCertificate, keys: Keys): Promise<CheckedCertificate | Finding> {
  const parts = jws.split('.');
  if (parts.length !== 3 || !parts.every(isCanonical))
    return { where, problem: 'is no certificate: that is three parts in base64url with a dot between two, and nothing else' };
  try {
    const { protectedHeader, payload } = await compactVerify(jws, keys, { algorithms: [ALGORITHM] });
    if (protectedHeader.typ !== TYPE) return { where, problem: 'is signed, but is no certificate: its header says what it is' };
    const statement = Statement.safeParse(JSON.parse(Buffer.from(payload).toString()));
    if (!statement.success) return { where, problem: 'is signed, but lacks what this version of Muster expects to be said' };
    return { where, jws, kid: protectedHeader.kid ?? '', statement: statement.data };
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey)
      return { where, problem: `is signed by the key ${decodeProtectedHeader(jws).kid}, which is not among the keys given` };
    if (error instanceof errors.JWSSignatureVerificationFailed)
      return { where, problem: 'does not hold: it was changed, or signed by somebody else under the name of a key given' };
    if (error instanceof errors.JOSEError || error instanceof SyntaxError)
      return { where, problem: 'is no certificate: its header or what it says cannot be read' };
    throw error;
  }
}

/** Decoders ignore the spare bits at the end of base64url: with others, another text would have the same signature. */
function isCanonical(part: string): boolean {
  return part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part;
}

/** What is wrong with certificates of one list, by their digests, that are all signed. The oldest may name one that is not given. */
function checkChain(list: ReadonlyMap<string, CheckedCertificate>): Finding[] {
  const inOrder = [...list.values()].toSorted((a, b) => (a.statement.verified_at < b.statement.verified_at ? -1 : 1));
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
