package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"berth/events/fault"
	"berth/internal/devca"
)

func (a *app) providerCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "provider", Short: "Serve a provider to managers on other machines, and try one out", Args: group, RunE: showHelp,
		Long: `Serve a provider of this machine to managers on other machines, over HTTPS with
mutual TLS or a bearer, and try out any endpoint that speaks the protocol.
docs/hosted.md goes through it step by step.`,
	}
	c.AddCommand(a.providerServeCommand(), a.providerConformCommand(), a.providerCertsCommand())
	return c
}

func (a *app) providerCertsCommand() *cobra.Command {
	var hosts []string
	c := &cobra.Command{
		Use: "certs DIR", Short: "Make a small certificate authority, to try mutual TLS", Args: args("DIR"),
		Long: `Make a certificate authority in DIR, a certificate for a provider, one for a
manager, and a bearer. They are valid for a year. Whoever has ca-key.pem can be
anybody: keep it away from both machines.`,
		Example: "  berth provider certs ./certs --host 127.0.0.1 --host build7.example",
		RunE: func(_ *cobra.Command, in []string) error {
			if err := devca.Make(in[0], hosts, time.Now()); err != nil {
				return err
			}
			file := func(name string) string { return filepath.Join(in[0], name) }
			made := map[string]string{"ca": file(devca.CA), "providerCert": file(devca.Provider), "providerKey": file(devca.ProviderKey),
				"managerCert": file(devca.Manager), "managerKey": file(devca.ManagerKey), "bearer": file(devca.Bearer)}
			return a.show(made, func(w io.Writer) {
				fmt.Fprintf(w, "made an authority in %s\nnext: berth provider serve --provider process --dir ./provider --cert %s --key %s --client-ca %s\n",
					in[0], made["providerCert"], made["providerKey"], made["ca"])
			})
		},
	}
	c.Flags().StringArrayVar(&hosts, "host", []string{"127.0.0.1", "localhost"}, "name or address of the provider; may be repeated")
	return c
}

// badSpec gives a refusal of the command line its flag.
func badSpec(flag string, err error) error {
	e := fault.From(err)
	if e == nil {
		return nil
	}
	c := *e
	c.Message = flag + ": " + e.Message
	return &c
}
