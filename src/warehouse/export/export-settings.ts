import type { Catalogue } from '../../catalogue/endpoint.js';
import type { NightExportKey } from '../../db/tables/night-exports.js';

export const EXPORT_FORMATS = ['parquet', 'csv', 'ndjson'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Where a night's files are in the folder of their resource: in the folder itself, or in one for each night, as Hive names partitions. */
export const EXPORT_LAYOUTS = ['flat', 'date'] as const;
export type ExportLayout = (typeof EXPORT_LAYOUTS)[number];

/** The exports that are made after each night. */
export interface ExportSettings {
  /** The folder as `exportFolder` gives it. */
  readonly to: string;
  readonly format: ExportFormat;
  /** Undefined: all resources of the catalogue. */
  readonly resources?: readonly string[];
  /** Whether an export fails where a list was never proved, or is late. */
  readonly requiresProofs?: boolean;
  /** Flat unless set. */
  readonly layout?: ExportLayout;
  /** Whether a file of the changes since the night before is next to each file. */
  readonly makesChanges?: boolean;
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
export function nightExportAddress(
  { to, format, layout = 'flat' }: ExportSettings,
  { environment, resource, night }: NightExportKey,
  kind: 'full' | 'changes' = 'full',
): string {
  const name = { flat: night, date: `date=${night}/${resource}` }[layout];
  const ending = { full: format, changes: `changes.${format}` }[kind];
  return [to.replace(/\/$/, ''), environment, resource, `${name}.${ending}`].join('/');
}
