import { loadCatalogue } from '../catalogue/load-catalogue.js';
import { FaultsError } from '../core/errors.js';
import { type Config, loadConfig } from './config.js';
import { SETTINGS } from './settings.js';

/**
 * The settings of a process that serves, and not only reads them to find one that does. Throws FaultsError with every fault of the
 * settings and of the catalogue at once: `invalid_configuration`, or `invalid_catalogue` where the settings are right.
 */
export function loadServerConfig(env: NodeJS.ProcessEnv): Config {
  const errors: FaultsError[] = [];
  const attempt = <T>(load: () => T): T | undefined => {
    try {
      return load();
    } catch (error) {
      if (!(error instanceof FaultsError)) throw error;
      errors.push(error);
      return undefined;
    }
  };
  const config = attempt(() => loadConfig(env));
  attempt(() => loadCatalogue(env[SETTINGS.cataloguePath.name]?.trim() || undefined));
  if (errors.length === 2) {
    const faults = errors.flatMap((error) => error.faults);
    throw new FaultsError('invalid_configuration', 'Muster cannot start: settings and the catalogue are wrong.', faults);
  }
  if (!config || errors[0]) throw errors[0]!;
  return config;
}
