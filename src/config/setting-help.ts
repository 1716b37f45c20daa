import { z } from 'zod';

/** A row of the table of settings, as docs/configuration.md shows it. */
export interface SettingHelp {
  readonly help: string;
  /** The effect while the variable is unset; for a setting with a default, the text of the default. */
  readonly unset: string;
  readonly example: string;
  /** Its value is never shown, and may come from a file named by the variable with the suffix `_FILE`. */
  readonly secret: boolean;
}

export const HELP = z.registry<SettingHelp>();

export type Help = Omit<SettingHelp, 'secret'>;

/** A setting that may be unset. */
export const optional = <T>(schema: z.ZodType<T, string>, help: Help) =>
  schema.optional().register(HELP, { secret: false, ...help });

/** A secret that may be unset. */
export const secret = <T>(schema: z.ZodType<T, string>, help: Help) =>
  schema.optional().register(HELP, { secret: true, ...help });

/** A setting whose default is the text `unset`. */
export const defaulted = <T>(schema: z.ZodType<T, string>, unset: string, help: Pick<Help, 'help' | 'example'>) =>
  schema.prefault(unset).register(HELP, { secret: false, unset, ...help });
