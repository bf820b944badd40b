/** Shows the server's own OpenAPI document. */
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';

SwaggerUI({
  domNode: document.querySelector('#api'),
  url: '/openapi.json',
  // With a validator, Swagger UI would send the document's address to another operator's server to be checked there.
  validatorUrl: null,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
});
