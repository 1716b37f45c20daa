import { isMusterError } from '../core/errors.js';
import type { ByEnvironment } from '../core/provider-settings.js';
import { type Check, type Finding, NotLookedAt, ok, problem, warning } from './check.js';
import type { Probe, ServiceProbes } from './service-probes.js';

/** A page that takes so long makes a night long; a request without a token has nothing to look up. */
const SLOW_MS = 2_000;

/** Makes one check for each environment. `wrong`: the settings have faults, so that no environment can be asked. */
export function checkServices(probes: ByEnvironment<ServiceProbes>, { wrong }: { readonly wrong: boolean }): Check[] {
  const checks = Object.entries(probes).map(([environment, { authority, api, bases }]) => ({
    name: `service ${environment}`,
    look: async () => [
      await findingOf(authority(), ({ status }) => authorityFault(status, environment)),
      await findingOf(api(), ({ status }) => apiFault(status, `${environment.toUpperCase()}_BASE_URL`)),
      ...(await Promise.all(
        Object.entries(bases).map(([name, base]) =>
          findingOf(base(), ({ status }) => baseFault(status, `${environment.toUpperCase()}_BASE_URL_${name.toUpperCase()}`)),
        ),
      )),
    ],
  }));
  if (checks.length > 0 || !wrong) return checks;
  const finding = warning('not looked at: its settings are wrong', 'Set them right, and look again.');
  return [{ name: 'service', look: () => Promise.reject(new NotLookedAt(finding)) }];
}

async function findingOf(answer: Promise<Probe>, faultOf: (probe: Probe) => string | undefined): Promise<Finding> {
  try {
    const probe = await answer;
    const way = probe.proxy === undefined ? '' : `, through the proxy ${probe.proxy}`;
    const found = `${probe.url.origin}${probe.url.pathname} answers ${probe.status} in ${probe.ms} ms${way}`;
    if (probe.status >= 500) return problem(found, 'Ask its operator; docs/errors.md has service_error.');
    if (probe.status === 429) return warning(found, 'Too many requests: nothing to do, unless it lasts.');
    const fault = faultOf(probe);
    if (fault !== undefined) return warning(found, fault);
    return probe.ms > SLOW_MS
      ? warning(`${found}, which is slow`, 'Look at the network between, or ask its operator.')
      : ok(found);
  } catch (error) {
    if (!isMusterError(error)) throw error;
    return problem(error.message, 'Check the address, DNS, proxies, firewalls and certificates.');
  }
}

/** A consent page refuses a request without parameters, with a page or by a redirect to one. */
function authorityFault(status: number, environment: string): string | undefined {
  return status === 404 ? `There is no page of consent: check ${environment.toUpperCase()}_AUTH_URL.` : undefined;
}

/** The API refuses a request without an access token. */
function apiFault(status: number, variable: string): string | undefined {
  if (status === 401 || status === 403) return undefined;
  return `An API would refuse a request without a token (401): check ${variable}.`;
}

/** A further host may have no companies' records. */
function baseFault(status: number, variable: string): string | undefined {
  return status === 404 ? undefined : apiFault(status, variable);
}
