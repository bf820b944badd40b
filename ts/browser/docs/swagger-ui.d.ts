declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  /** The settings used here, from https://swagger.io/docs/open-source-tools/swagger-ui/usage/configuration/. */
  interface Settings {
    readonly domNode: Element | null;
    readonly url: string;
    readonly validatorUrl: null;
    readonly docExpansion: 'list' | 'full' | 'none';
    readonly defaultModelsExpandDepth: number;
    readonly displayRequestDuration: boolean;
  }

  export default function SwaggerUI(settings: Settings): void;
}
