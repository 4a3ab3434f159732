// A collector of the OpenTelemetry project with two of its components: it takes OTLP over HTTP and hands it on to Prometheus.
package main

import (
	"log"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func components() (otelcol.Factories, error) {
	takes, hands := otlpreceiver.NewFactory(), prometheusexporter.NewFactory()
	return otelcol.Factories{
		Receivers: map[component.Type]receiver.Factory{takes.Type(): takes},
		Exporters: map[component.Type]exporter.Factory{hands.Type(): hands},
		Telemetry: otelconftelemetry.NewFactory(),
	}, nil
}

func main() {
	set := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "0"},
		Factories: components,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				DefaultScheme:     "file",
				ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
			},
		},
	}
	command := otelcol.NewCommand(set)
	command.SetArgs(os.Args[1:])
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
