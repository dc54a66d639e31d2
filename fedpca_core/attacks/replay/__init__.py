"""Replay: find the matrix with which FAPS's public update gives a client's uploads.

In the order of reading::

    messages <- (Z_t, Y_t) of the client's rounds            client.Message
    leaks    <- round 1: Y_1 = beta Z + (I - Z Z^T) S Z      setup.Setup
    basis    <- where S can live, if that is less than all   setup.read_span
    for start in the prior, then random matrices             setup.Setup.guess
        for rounds in few, enough, twice that, all           setup.Setup.stages
            repeat                                           least_squares.descend
                answers <- the method's own client step,     client.FapsReplay.answers
                           run on the guess of S
                J <- derivatives of the answers              client.FapsReplay.jacobian
                guess <- damped step, bent along the valley  least_squares._Linear
            give the start up if it is hopeless              attack.Replaying._climb
        secret numbers of inner steps: each is tried         attack.Replaying._branch
        done if the uploads are explained to rounding        attack.Replaying._finish
    S <- the best guess, and how far the messages            attack.Replaying.result
         leave it open                                       attack._uncertainty
"""
