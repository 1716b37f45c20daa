import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import type { ByEnvironment, ProviderSettings } from '../core/provider-settings.js';
import type { StaleAfterHours } from '../core/stale-after.js';
import type { HttpClient } from '../http/http-client.js';
import { mirrorRelations } from '../mirror/mirror-table.js';
import { checkAge } from './age.js';
import { checkCatalogue } from './catalogue.js';
import type { Check } from './check.js';
import { checkClock } from './clock.js';
import { type ConfigurationState, checkConfiguration } from './configuration.js';
import { checkDatabase } from './database.js';
import { DatabaseAccess, type DatabasePlace } from './database-access.js';
import { checkDisk } from './disk.js';
import { checkIssuer } from './issuer.js';
import { checkKeys, type Keys } from './keys.js';
import { checkQueue, type QueuePlace } from './queue.js';
import { checkServices } from './service.js';
import { serviceProbes } from './service-probes.js';
import { checkTransactions } from './transactions.js';
import { checkWebhook } from './webhook.js';
import { checkWorkers } from './workers.js';

/** The settings of an installation, before any of its parts is asked. */
export interface Installation {
  readonly configuration: ConfigurationState;
  readonly database: DatabasePlace;
  readonly queue: QueuePlace;
  readonly keys: Keys;
  /** Throws FaultsError `invalid_catalogue`. */
  readonly loadCatalogue: () => Catalogue;
  readonly providers: ByEnvironment<ProviderSettings>;
  /** People sign in to the control room through it; undefined where they use tokens alone. */
  readonly issuer: URL | undefined;
  readonly hasWebhook: boolean;
  /** When the lists of a catalogue are late; undefined where a setting is wrong. */
  readonly lateness: ((catalogue: Catalogue) => StaleAfterHours) | undefined;
  readonly workerConcurrency: number;
  readonly changeRetentionDays: number | undefined;
  /** Folder of the embedded database, where that is used. */
  readonly embeddedHome: string | undefined;
  readonly http: HttpClient;
  readonly clock: Clock;
}

/** Every check, in the order in which a person reads them: the foundations come first. */
export function checksOf(installation: Installation): readonly Check[] {
  const { configuration, queue, keys, providers, http, clock } = installation;
  const access = new DatabaseAccess(installation.database);
  const probes = serviceProbes(http, providers, clock);
  const catalogue = catalogueOf(installation);
  const carriesQueue = queue === 'PostgreSQL';
  return [
    checkConfiguration(configuration),
    checkCatalogue(installation.loadCatalogue, access),
    checkDatabase({ ...installation, access, carriesQueue, mirrorTables: catalogue ? mirrorRelations(catalogue) : [] }),
    checkTransactions(access),
    checkQueue({ place: queue, access, clock }),
    checkWorkers(access),
    checkWebhook({ access, isSet: installation.hasWebhook }),
    checkClock({ access, probes, clock }),
    checkKeys(keys, access),
    ...checkServices(probes, { wrong: configuration.faults.length > 0 }),
    ...checkIssuer(http, installation.issuer),
    checkAge({ access, environments: configuration.environments, lists: listsOf(catalogue, installation) }),
    checkDisk({ ...installation, access, home: installation.embeddedHome }),
  ];
}

/** The lists whose proofs are counted. */
function listsOf(catalogue: Catalogue | undefined, { lateness }: Pick<Installation, 'lateness'>) {
  if (!catalogue || lateness === undefined) return undefined;
  return { resources: catalogue.endpoints.map(({ resource }) => resource), staleAfterHours: lateness(catalogue) };
}

/** Undefined where it is wrong: the check of the catalogue reports that. */
function catalogueOf({ loadCatalogue }: Installation): Catalogue | undefined {
  try {
    return loadCatalogue();
  } catch {
    return undefined;
  }
}
