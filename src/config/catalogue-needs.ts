import type { Catalogue } from '../catalogue/endpoint.js';
import type { Fault } from '../core/errors.js';
import type { ByEnvironment, ProviderSettings } from '../core/provider-settings.js';
import type { Secret } from '../core/secret.js';
import { needsKey } from '../privacy/rules.js';
import type { ExportSettings } from '../warehouse/export/export-settings.js';
import { missingBases } from './further-bases.js';
import { helpOf } from './settings.js';

/** The settings that a catalogue may need. */
interface Settings {
  readonly privacyKey?: Secret;
  readonly providers: ByEnvironment<ProviderSettings>;
  readonly exports?: Pick<ExportSettings, 'resources'>;
}

/** The faults for settings that the catalogue needs and that are missing, and for exported resources that it does not have. */
export function faultsWith(settings: Settings, catalogue: Catalogue): Fault[] {
  return [...missingFor(settings, catalogue), ...unknownResources(settings, catalogue)];
}

/** The faults for settings that the catalogue needs and that are missing. */
export function missingFor(settings: Settings, catalogue: Catalogue): Fault[] {
  return [...missingPrivacyKey(settings, catalogue), ...missingBases(settings, catalogue)];
}

function missingPrivacyKey({ privacyKey }: Settings, { endpoints }: Catalogue): Fault[] {
  const { resource } = endpoints.find(({ privacy }) => needsKey(privacy?.rules)) ?? {};
  if (privacyKey || resource === undefined) return [];
  const problem = `is missing; the list ${resource} has a rule "hash" in the catalogue, and hashes need a key that you keep`;
  return [{ where: 'MUSTER_PRIVACY_KEY', problem, example: helpOf('MUSTER_PRIVACY_KEY').example }];
}

/** The faults for resources of EXPORT_RESOURCES that the catalogue does not have. */
function unknownResources({ exports }: Settings, { get, endpoints }: Catalogue): Fault[] {
  const known = endpoints.map(({ resource }) => resource).join(', ');
  const { example } = helpOf('EXPORT_RESOURCES');
  const problem = (n: number) => `entry ${n + 1} is not in the catalogue, which has ${known}`;
  return (exports?.resources ?? []).flatMap((resource, n) =>
    get(resource) ? [] : [{ where: 'EXPORT_RESOURCES', problem: problem(n), example }],
  );
}
