import { isMusterError } from '../core/errors.js';
import { parseObject } from '../core/json.js';
import { withoutSlash } from '../core/own-address.js';
import { type HttpClient, textOf } from '../http/http-client.js';
import { type Check, type Finding, ok, problem } from './check.js';

/** Checks that the OpenID Connect issuer answers and is the one that the settings name; no check where none is set. Sends no secret. */
export function checkIssuer(http: HttpClient, issuer: URL | undefined): Check[] {
  return issuer === undefined ? [] : [{ name: 'issuer', look: async () => [await findingOf(http, issuer)] }];
}

async function findingOf(http: HttpClient, issuer: URL): Promise<Finding> {
  const url = new URL(`${withoutSlash(issuer)}/.well-known/openid-configuration`);
  try {
    const answer = await http.send({ method: 'GET', url, freshConnection: true });
    const proxy = http.proxyFor(url);
    const found = `${url.href} answers ${answer.status}${proxy === undefined ? '' : ` through the proxy ${proxy}`}`;
    if (answer.status >= 500) return problem(found, 'Ask its operator; until then people sign in with tokens.');
    if (answer.status !== 200) return problem(found, 'There is no issuer: check OIDC_ISSUER.');
    const named = issuerIn(textOf(answer));
    if (named === undefined)
      return problem(`${found}, and names no issuer`, 'Check OIDC_ISSUER: it is an address of something else.');
    if (named.href !== issuer.href)
      return problem(`${found}, and is the issuer ${named.href}`, 'Set OIDC_ISSUER to that, if it is the one that you mean.');
    return ok(`${found}, and is the issuer that is set`);
  } catch (error) {
    if (!isMusterError(error)) throw error;
    return problem(
      error.message,
      'Check OIDC_ISSUER, DNS, proxies, firewalls and certificates; until then people sign in with tokens.',
    );
  }
}

function issuerIn(text: string): URL | undefined {
  const issuer = parseObject(text)?.['issuer'];
  return typeof issuer === 'string' && URL.canParse(issuer) ? new URL(issuer) : undefined;
}
