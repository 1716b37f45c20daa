import type { Catalogue } from '../../catalogue/endpoint.js';
import type { NightExportKey } from '../../db/tables/night-exports.js';

export const EXPORT_FORMATS = ['parquet', 'csv', 'ndjson'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** The exports that are made after each night. */
export interface ExportSettings {
  /** The folder as `exportFolder` gives it. */
  readonly to: string;
  readonly format: ExportFormat;
  /** Undefined: all resources of the catalogue. */
  readonly resources?: readonly string[];
  /** Whether an export fails where a list was never proved, or is late. */
  readonly requiresProofs?: boolean;
}

/** The resources that nights export; none without settings. */
export function exportedResources(
  settings: ExportSettings | undefined,
  { endpoints }: Pick<Catalogue, 'endpoints'>,
): readonly string[] {
  return settings ? (settings.resources ?? endpoints.map(({ resource }) => resource)) : [];
}

/**
 * The address of a night's export. The environment comes first even where there is only one: a second one then moves no file that a loader reads, and no file
 * holds data of both.
 */
export function nightExportAddress({ to, format }: ExportSettings, { environment, resource, night }: NightExportKey): string {
  const parts = [environment, resource, `${night}.${format}`];
  return [to.replace(/\/$/, ''), ...parts].join('/');
}
